using BridgeSharp.Parallel;
using TorchSharp;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>How arguments reach a module.</summary>
[Collection(nameof(Serial))]
public sealed class InvokeTests
{
    public static TheoryData<string> Cases => Vectors.Names("keyword_arguments");

    /// <summary>Arguments reach forward by position and by name, or are named. Spec: R3.5.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("keyword_arguments", name);
        var inputs = Vectors.Tree(entry.GetProperty("inputs"))!;
        Vectors.Check(entry, () =>
        {
            var result = Unwrapped(() => parallel_apply([new Affine()], [inputs], [Vectors.Kwargs(entry)]));
            Same.Trees(Vectors.Tree(entry.GetProperty("result")), result[0]);
        });
    }

    /// <summary>Where a key names one of several parameters, a dictionary is taken apart. Spec: R3.5.</summary>
    [Fact]
    public void Dictionaries_are_keyword_arguments()
    {
        using var scope = NewDisposeScope();
        var inputs = new Dictionary<string, Tensor> { ["factor"] = tensor([3.0, 4.0]), ["x"] = tensor([1.0, 2.0]) };
        var shards = scatter<object>(inputs, [CPU, CPU]);

        Same.Trees(tensor([3.0, 8.0]), gather(parallel_apply([new Affine(), new Affine()], shards)));
        Same.Trees(tensor([4.0, 6.0]), gather(parallel_apply([new Summed(), new Summed()], shards)));
        Assert.Equal("keywords must be strings", Assert.Throws<ArgumentException>(
            () => Invoke.Call(new Affine(), new Dictionary<object, Tensor> { ["x"] = tensor(1.0), [1] = tensor(1.0) })).Message);
    }

    /// <summary>A dictionary whose keys name no parameter reaches the first as it is. Spec: R3.5.</summary>
    [Fact]
    public void Other_dictionaries_are_one_argument()
    {
        using var scope = NewDisposeScope();
        var batch = new Dictionary<string, Tensor> { ["factor"] = tensor([3.0]), ["x"] = tensor([1.0]) };

        Same.Trees(tensor([4.0]), parallel_apply([new Flagged()], [batch])[0]);
        Same.Trees(tensor([-4.0]), parallel_apply([new Flagged()], [batch], [new Dictionary<string, object?> { ["negative"] = true }])[0]);
    }

    /// <summary>A module that cannot be called is refused by its type. Spec: R3.1.</summary>
    [Fact]
    public void Modules_without_forward_are_named()
    {
        using var scope = NewDisposeScope();
        var error = Assert.Throws<ArgumentException>(() => Invoke.Call(nn.ModuleDict(), ones(1)));
        Assert.StartsWith("parallel_apply: expected a Module with a forward method, got TorchSharp.Modules.ModuleDict", error.Message, StringComparison.Ordinal);
    }

    /// <summary>Arguments of types that do not fit the module are refused, and both are named. Spec: R3.1.</summary>
    [Fact]
    public void Arguments_that_do_not_fit_are_named()
    {
        using var scope = NewDisposeScope();
        var error = Assert.Throws<ReplicaException>(() => parallel_apply([new Scaled()], new List<object> { (ones(1), "a") }));

        Assert.Equal("parallel_apply: expected Scaled to be called with (Tensor, Tensor), got (Tensor, String)", error.InnerException!.Message);
    }

    /// <summary>A batch that is a dictionary trains and predicts as one model does. Spec: R3.5, R8.1.</summary>
    [Fact]
    public void Trainer_takes_keyword_arguments()
    {
        using var scope = NewDisposeScope();
        using var model = new Scaled();
        using var optimizer = new BridgeSharp.Optim.SGD(model.parameters(), lr: 0.25);
        using var trainer = new Trainer(model, optimizer, (Tensor outputs, Tensor targets) => nn.functional.mse_loss(outputs, targets), [CPU, CPU]);
        var batch = new Dictionary<string, Tensor> { ["input2"] = tensor([2f, 3, 4]), ["input1"] = tensor([1f, 2, 0.5f]) };

        Assert.Equal(44.0 / 3, trainer.step(batch, zeros(3)), 1e-5);
        Assert.Equal(1 - (0.25 * 2 * 44 / 3), model.Weight.item<float>(), 1e-5);
        Same.Trees(model.Weight.detach() * tensor([2f, 6, 2]), ((Tensor)trainer.predict(batch)).detach());
    }

    private static IReadOnlyList<object> Unwrapped(Func<IReadOnlyList<object>> run)
    {
        try
        {
            return run();
        }
        catch (ReplicaException error)
        {
            throw error.Failures[0].Error;
        }
    }

    private sealed class Affine() : nn.Module<Tensor, Tensor, Tensor?, Tensor>(nameof(Affine))
    {
        public override Tensor forward(Tensor x, Tensor factor, Tensor? shift = null) => shift is null ? x * factor : (x * factor) + shift;
    }

    private sealed class Summed() : nn.Module<IReadOnlyDictionary<string, Tensor>, Tensor>(nameof(Summed))
    {
        public override Tensor forward(IReadOnlyDictionary<string, Tensor> input) => input["x"] + input["factor"];
    }

    private sealed class Flagged() : nn.Module<IReadOnlyDictionary<string, Tensor>, bool, Tensor>(nameof(Flagged))
    {
        public override Tensor forward(IReadOnlyDictionary<string, Tensor> batch, bool negative = false)
            => negative ? -(batch["x"] + batch["factor"]) : batch["x"] + batch["factor"];
    }
}
