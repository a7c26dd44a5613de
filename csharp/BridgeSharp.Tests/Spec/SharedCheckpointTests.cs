using BridgeSharp.Data;
using BridgeSharp.Models;
using BridgeSharp.Optim;
using TorchSharp;
using Xunit;
using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Tests.Spec;

/// <summary>A training run that both languages take from one file.</summary>
[Collection(nameof(Serial))]
public sealed class SharedCheckpointTests
{
    private const double Relative = 1e-12;

    public static TheoryData<string> Cases => Vectors.Names("training_checkpoint");

    /// <summary>Losses and parameters, in mid-epoch and between two updates. Spec: R28.5.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void The_run_goes_on_as_the_unbroken(string name)
    {
        using var scope = NewDisposeScope();
        using var folder = new CheckpointFolder();
        var entry = Vectors.Find("training_checkpoint", name);
        folder.Write(entry);
        var data = (Vectors.Tensor(entry.GetProperty("inputs")), Vectors.Tensor(entry.GetProperty("targets"), "int64"));
        var loader = new Loader<(object, object)>(data, 6, seed: 2);
        using var trainer = new Trainer(
            new DropoutNet().to(float64),
            parameters => new Adam(parameters, amsgrad: true),
            (outputs, targets) => (cross_entropy((Tensor)outputs, (Tensor)targets), 1),
            [CPU, CPU],
            new() { accumulate = 2, scheduler = own => new StepLR((Optimizer)own, 2, gamma: 0.5) });

        trainer.load(folder.Path, loader);
        var losses = loader.Select(batch => trainer.step(batch.Item1, batch.Item2)).ToList();

        Assert.Equal(entry.Items("losses").Select(loss => loss.GetDouble()), losses, (one, other) => Math.Abs(one - other) <= Relative * Math.Abs(one));
        var state = trainer.state_dict();
        Assert.Equal(entry.Members("state").Select(member => member.Name), state.Keys);
        Assert.All(entry.Members("state"), member => Same.Within(Vectors.Tensor(member.Value), state[member.Name], Relative));
    }
}
