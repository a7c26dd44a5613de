using System.Text.Json;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Making replicas.</summary>
[Collection(nameof(Serial))]
public sealed class ReplicateTests
{
    public static TheoryData<string> Cases => Vectors.Names("replicate");

    /// <summary>Refusals are those of the vectors. Spec: R4.3.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("replicate", name);
        var meta = entry.Items("meta").Select(item => item.GetString()).ToList();
        var model = Made(entry);
        var devices = entry.Items("devices").Select(_ => CPU).ToList();
        var other = entry.Optional("factory") is not { } made ? null : made.ValueKind == JsonValueKind.String ? model : Made(made);

        Vectors.Check(entry, () => replicate(model, devices, other is null ? null : () => other));

        Net Made(JsonElement element) => new(Placed(element, "parameters"), Placed(element, "buffers"));

        IEnumerable<(string, Tensor)> Placed(JsonElement element, string kind) => element.Members(kind)
            .Select(member => (member.Name, Vectors.Tensor(member.Value).to(meta.Contains(member.Name) ? META : CPU)));
    }

    /// <summary>An optimizer on the model's parameters stays valid. Spec: R4.1.</summary>
    [Fact]
    public void Replica_0_is_the_model()
    {
        using var model = nn.Linear(2, 2);

        Assert.Same(model, Assert.Single(replicate(model, [CPU])));
        Assert.Same(model, replicate(model, [CPU, CPU, CPU])[0]);
    }

    /// <summary>No tensor of a copy, buffers included, shares storage with that of another replica. Spec: R4.1.</summary>
    [Fact]
    public void Copies_have_storage_of_their_own()
    {
        var replicas = replicate(new Tied(), [CPU, CPU, CPU]);
        var states = replicas.Select(replica => StateDict.Of(replica).Append(new("scratch", replica.Scratch)).ToList()).ToList();

        Assert.Equal(["counter", "first.weight", "first.bias", "second.weight", "second.bias"], states[1].Take(5).Select(pair => pair.Key));
        var before = Bits(states[0]);
        Assert.All(states, state => Assert.Equal(states[0].Select(pair => pair.Key), state.Select(pair => pair.Key)));
        Assert.All(states, state => Assert.Equal(before, Bits(state)));
        foreach (var (_, tensor) in states[1])
        {
            tensor.detach().add_(1);
        }

        Assert.Equal(before, Bits(states[0]));
        Assert.Equal(before, Bits(states[2]));

        static List<byte[]> Bits(IEnumerable<KeyValuePair<string, Tensor>> state) => [.. state.Select(pair => Same.Bits(pair.Value))];
    }

    /// <summary>Gradients stay with the model. Spec: R4.2.</summary>
    [Fact]
    public void Copies_have_no_gradients()
    {
        using var model = nn.Linear(2, 2);
        model.call(ones(1, 2)).sum().backward();

        using var copy = replicate(model, [CPU, CPU])[1];

        Assert.All(copy.parameters(), parameter => Assert.Null(parameter.grad));
        Assert.All(model.parameters(), parameter => Assert.NotNull(parameter.grad));
    }

    /// <summary>What is frozen, what is in evaluation mode and what is tied is so in the copy. Spec: R4.2.</summary>
    [Fact]
    public void Flags_stay()
    {
        using var model = new Tied();
        model.First.bias!.requires_grad_(false);
        model.Norm.eval();

        using var copy = replicate(model, [CPU, CPU])[1];

        Assert.Equal(["first.bias"], copy.named_parameters().Where(named => !named.parameter.requires_grad).Select(named => named.name));
        Assert.Equal((true, true, false), (copy.training, copy.First.training, copy.Norm.training));
        Assert.Same(copy.First.weight, copy.Second.weight);
        Assert.True(copy.First.weight.is_leaf);
    }

    /// <summary>Hooks act in every replica, on the replica's own module. Spec: R4.1.</summary>
    [Fact]
    public void Hooks_come_along()
    {
        using var scope = NewDisposeScope();
        var model = new Net([("w", zeros(1))]);
        List<nn.Module> seen = [];
        model.register_forward_hook((module, _, output) =>
        {
            seen.Add(module);
            return output + 1;
        });

        var copy = replicate(model, [CPU, CPU])[1];
        var output = copy.call(ones(1));

        Assert.Equal(2, output.item<float>());
        Assert.Equal([copy], seen);
    }

    /// <summary>The model is as before, and replicating again gives equal copies. Spec: R4.1.</summary>
    [Fact]
    public void Replicating_changes_nothing()
    {
        using var scope = NewDisposeScope();
        var model = new Tied();
        var before = StateDict.Of(model).Select(pair => Same.Bits(pair.Value)).ToList();

        replicate(model, [CPU, CPU])[1].First.weight.detach().zero_();
        var again = replicate(model, [CPU, CPU])[1];

        Assert.Equal(before, StateDict.Of(model).Select(pair => Same.Bits(pair.Value)));
        Assert.Equal(before, StateDict.Of(again).Select(pair => Same.Bits(pair.Value)));
    }

    /// <summary>A copy lives and trains on its own, also after the model is disposed. Spec: R4.1.</summary>
    [Fact]
    public void Copies_train_independently()
    {
        using var scope = NewDisposeScope();
        var model = nn.Linear(2, 1);
        var before = model.weight.detach().clone();
        var copy = replicate(model, [CPU, CPU])[1];
        using (var optimizer = new Optim.SGD(copy.parameters(), lr: 1))
        {
            copy.call(ones(1, 2)).sum().backward();
            optimizer.step();
        }

        Same.Trees(before, model.weight.detach());
        model.Dispose();
        Same.Trees(before - 1, copy.weight.detach());
    }

    /// <summary>A copy outlives the dispose scope in which it was made, and is disposed alone. Spec: R4.1.</summary>
    [Fact]
    public void Copies_outlive_the_scope()
    {
        using var model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2));
        Sequential copy;
        using (var scope = NewDisposeScope())
        {
            copy = replicate(model, [CPU, CPU])[1];
            Assert.Equal(0, scope.DisposablesCount);
        }

        var tensors = StateDict.Of(copy).Values.ToList();
        Assert.All(tensors, tensor => Assert.False(tensor.IsInvalid));
        copy.Dispose();
        Assert.All(tensors, tensor => Assert.True(tensor.IsInvalid));
        Assert.All(StateDict.Of(model).Values, tensor => Assert.False(tensor.IsInvalid));
    }
}
