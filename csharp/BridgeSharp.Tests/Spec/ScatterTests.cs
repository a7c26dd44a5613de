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

    public static TheoryData<string> KwargsCases => Vectors.Names("scatter_kwargs");

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

    /// <summary>Positional and keyword arguments are split into as many shards of both. Spec: R1.7.</summary>
    [Theory]
    [MemberData(nameof(KwargsCases))]
    public void Vectors_of_keyword_arguments_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("scatter_kwargs", name);
        var devices = Enumerable.Repeat(CPU, entry.GetProperty("devices").GetInt32()).ToList();
        Vectors.Check(entry, () =>
        {
            var dim = entry.Optional("dim")?.GetInt32() ?? 0;
            var (shards, kwargs) = scatter_kwargs(Vectors.Tree(entry.GetProperty("inputs"))!, Vectors.Kwargs(entry), devices, dim);
            Same.Trees(Vectors.Tree(entry.GetProperty("shards")), shards);
            Same.Trees(Vectors.Tree(entry.GetProperty("named")), kwargs);
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
            scatter_kwargs(inputs, new Dictionary<string, object?> { ["mask"] = inputs }, [CPU, CPU]);
            Assert.Equal(before + 8, Tensor.TotalCount);
        }

        Assert.Equal(before, Tensor.TotalCount);
        Assert.True(shards[0].Item1.IsInvalid);
    }
}
