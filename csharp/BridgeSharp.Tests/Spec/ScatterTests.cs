using TorchSharp;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Splitting the arguments of a step.</summary>
[Collection(nameof(Serial))]
public sealed class ScatterTests
{
    public static TheoryData<string> Cases => Vectors.Names("scatter");

    /// <summary>Shards and refusals are those of the vectors. Spec: R1.1, R1.2, R1.3, R1.4, R1.5.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("scatter", name);
        var devices = Enumerable.Repeat(CPU, entry.GetProperty("devices").GetInt32()).ToList();
        Vectors.Check(entry, () =>
        {
            var shards = scatter(Vectors.Tree(entry.GetProperty("inputs")), devices, entry.Optional("dim")?.GetInt32() ?? 0);
            Same.Trees(Vectors.Tree(entry.GetProperty("shards")), shards);
        });
    }

    /// <summary>On the same device a shard is a view of the inputs: nothing is copied. Spec: R1.1.</summary>
    [Fact]
    public void Shards_are_views()
    {
        using var scope = NewDisposeScope();
        var inputs = arange(6.0, float64);

        var shards = scatter(inputs, [CPU, CPU]);
        shards[1].zero_();

        Assert.Equal([0, 1, 2, 0, 0, 0], inputs.data<double>().ToArray());
    }

    /// <summary>For every count and number of devices the shards are those of torch.chunk. Spec: R1.1.</summary>
    [Fact]
    public void Sizes_are_those_of_chunk()
    {
        using var scope = NewDisposeScope();
        for (var count = 1; count < 18; count++)
        {
            var inputs = arange(count);
            for (var devices = 1; devices < 8; devices++)
            {
                Same.Trees(inputs.chunk(devices).ToList(), scatter(inputs, [.. Enumerable.Repeat(CPU, devices)]).ToList());
            }
        }
    }

    /// <summary>Arrays, lists, dictionaries and tuples of any length keep their type. Spec: R1.2, R1.3.</summary>
    [Fact]
    public void Types_stay()
    {
        using var scope = NewDisposeScope();
        var x = tensor(new[] { 1.0, 2.0 });
        var typed = (new Dictionary<string, Tensor> { ["x"] = x }, new[] { "a", "b" }, new List<int> { 3, 4 });
        var wide = (x, 1, 2, 3, 4, 5, 6, 7, Tuple.Create(x, "last"));

        var second = scatter(typed, [CPU, CPU])[1];
        var widest = scatter(wide, [CPU, CPU])[1];

        Assert.Equal(2, second.Item1["x"].item<double>());
        Assert.Equal(["b"], second.Item2);
        Assert.Equal([4], second.Item3);
        Assert.Equal((7, "last"), (widest.Item8, widest.Item9.Item2));
        Assert.Equal(2, widest.Item9.Item1.item<double>());
    }

    /// <summary>Shards belong to the dispose scope of the caller, and nothing else is left. Spec: R1.1.</summary>
    [Fact]
    public void Shards_belong_to_the_callers_scope()
    {
        using var outer = NewDisposeScope();
        var inputs = arange(4.0, float64);
        var before = Same.Live();
        IReadOnlyList<(Tensor, Tensor)> shards;
        using (NewDisposeScope())
        {
            shards = scatter((inputs, inputs), [CPU, CPU]);
            Assert.Equal(before + 4, Tensor.TotalCount);
            Assert.Equal([2, 3], shards[1].Item2.data<double>().ToArray());
        }

        Assert.Equal(before, Tensor.TotalCount);
        Assert.True(shards[0].Item1.IsInvalid);
    }
}
