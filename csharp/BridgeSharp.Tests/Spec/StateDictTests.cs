using TorchSharp;
using Xunit;
using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Tests.Spec;

/// <summary>Loading a state, strictly.</summary>
[Collection(nameof(Serial))]
public sealed class StateDictTests
{
    public static TheoryData<string> Cases => Vectors.Names("state_dict");

    /// <summary>States and refusals are those of the vectors, and a refusal changes nothing. Spec: R6.2, R6.6.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("state_dict", name);
        var module = new Net(Tensors("own"));
        var source = new OrderedDictionary<string, Tensor>(Tensors("source").Select(member => KeyValuePair.Create(member.Name, member.Value)));

        Vectors.Check(entry, () => StateDict.Load(module, source, entry.Optional("prefix")?.GetString() ?? ""));

        var kept = Tensors(entry.Optional("expected") is null ? "own" : "expected").ToDictionary(member => member.Name, member => member.Value);
        Assert.All(StateDict.Of(module), member => Same.Trees(kept[member.Key], member.Value));

        IEnumerable<(string Name, Tensor Value)> Tensors(string part)
            => entry.Members(part).Select(member => (member.Name, (Tensor)Vectors.Tree(member.Value)!));
    }

    /// <summary>The state of a wrapper reaches every replica. Spec: R6.6.</summary>
    [Fact]
    public void A_trainer_takes_a_prefix()
    {
        using var scope = NewDisposeScope();
        var model = nn.Linear(1, 1, hasBias: false);
        using var trainer = new Trainer(model, new Optim.SGD(model.parameters()), (outputs, targets) => mse_loss(outputs, targets), TrainerTests.Cpus(3));

        trainer.load_state_dict(new Dictionary<string, Tensor> { ["module.weight"] = full(1, 1, 2.5f) }, prefix: "module.");

        Assert.All(trainer.replicas, replica => Assert.Equal(2.5, TrainerTests.Weight(replica)));
    }
}
