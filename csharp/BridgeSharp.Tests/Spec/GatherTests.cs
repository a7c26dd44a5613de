using TorchSharp;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Joining the outputs of the replicas.</summary>
[Collection(nameof(Serial))]
public sealed class GatherTests
{
    public static TheoryData<string> Cases => Vectors.Names("gather");

    /// <summary>What is joined and what is refused is that of the vectors. Spec: R2.1, R2.2.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("gather", name);
        var outputs = entry.Items("outputs").Select(Vectors.Tree).ToList();
        Vectors.Check(entry, () =>
        {
            var joined = gather(outputs, dim: entry.Optional("dim")?.GetInt32() ?? 0);
            Same.Trees(Vectors.Tree(entry.GetProperty("joined")), joined);
        });
    }

    /// <summary>Each replica gets the gradient of its own part, of vectors and of scalars. Spec: R2.3.</summary>
    [Fact]
    public void Gradients_flow_back_to_every_replica()
    {
        using var scope = NewDisposeScope();
        var parts = new[] { ones(2, 2, requires_grad: true), ones(1, 2, requires_grad: true) };

        var (joined, sums) = gather(parts.Select(part => (part, part.sum())).ToList());
        (joined * tensor(new[] { 1f, 2f, 3f }).unsqueeze(1)).sum().backward(retain_graph: true);
        (sums * tensor(new[] { 10f, 20f })).sum().backward();

        Assert.Equal([11, 11, 12, 12], parts[0].grad!.data<float>().ToArray());
        Assert.Equal([23, 23], parts[1].grad!.data<float>().ToArray());
    }

    /// <summary>The result shares nothing with the outputs, not even those of one replica. Spec: R2.1.</summary>
    [Fact]
    public void Result_is_fresh()
    {
        using var scope = NewDisposeScope();
        var output = ones(2);

        gather([output]).zero_();

        Assert.Equal(2, output.sum().item<float>());
    }

    /// <summary>The result belongs to the dispose scope of the caller, and nothing else is left. Spec: R2.1.</summary>
    [Fact]
    public void Result_belongs_to_the_callers_scope()
    {
        using var outer = NewDisposeScope();
        var outputs = new List<(Tensor, Tensor)> { (ones(2), ones(1)), (ones(3), ones(1)) };
        var before = Same.Live();
        (Tensor First, Tensor Second) joined;
        using (NewDisposeScope())
        {
            joined = gather(outputs);
            Assert.Equal(before + 2, Tensor.TotalCount);
        }

        Assert.Equal(before, Tensor.TotalCount);
        Assert.True(joined.First.IsInvalid);
    }
}
