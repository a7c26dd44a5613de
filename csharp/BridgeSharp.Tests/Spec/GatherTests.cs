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

    /// <summary>What is joined and what is refused is that of the vectors. Spec: R2.1, R2.2, R2.4.</summary>
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

    /// <summary>For any tree, dimension and number of devices the shards join to the batch. Spec: R2.5.</summary>
    [Theory]
    [InlineData(0)]
    [InlineData(1)]
    [InlineData(-1)]
    [InlineData(-2)]
    public void Gather_undoes_scatter(int dim)
    {
        using var scope = NewDisposeScope();
        for (var count = 1; count < 9; count++)
        {
            var inputs = ((object?)arange(count * count * 2L).reshape(count, 2, count).select(1, 1),
                new Dictionary<object, object?> { [7] = new Pair(rand(count, count), null), ["empty"] = ValueTuple.Create() });
            for (var devices = 1; devices < 6; devices++)
            {
                Same.Trees(inputs, gather(scatter(inputs, [.. Enumerable.Repeat(CPU, devices)], dim), dim: dim));
            }
        }
    }

    /// <summary>Records, arrays and typed lists keep their type; whole numbers and fractions of any size are of one kind. Spec: R2.1, R2.2.</summary>
    [Fact]
    public void Types_stay()
    {
        using var scope = NewDisposeScope();
        var joined = gather([(new Output(ones(1), ones([])), new[] { ones(2) }), (new Output(ones(2), ones([])), new[] { ones(2) })]);

        Assert.Equal([1, 1, 1], joined.Item1.Logits.data<float>().ToArray());
        Assert.Equal([2], joined.Item1.Loss.shape);
        Assert.Equal([4], Assert.Single(joined.Item2).shape);
        Same.Trees(tensor([1L, 2L]), gather<object>([1, 2L]));
        Same.Trees(tensor([0.5, 0.25]), gather<object>([0.5f, 0.25]));
    }

    /// <summary>A place that cannot hold the tensor that numbers become is named. Spec: R2.1.</summary>
    [Fact]
    public void Typed_numbers_are_refused()
    {
        using var scope = NewDisposeScope();
        var error = Assert.Throws<ArgumentException>(() => gather([(ones(1), 0.5), (ones(1), 0.25)]));
        Assert.Equal("gather: expected outputs[1] to be of a type that can hold a tensor, got Double", error.Message);
        Same.Trees(tensor([0.5, 0.25]), gather<(Tensor, object)>([(ones(1), 0.5), (ones(1), 0.25)]).Item2);
    }

    /// <summary>A packed sequence is in the order of its time steps: it is not joined. Spec: R2.2.</summary>
    [Fact]
    public void Packed_sequences_are_refused()
    {
        using var scope = NewDisposeScope();
        using var packed = nn.utils.rnn.pack_sequence([ones(2), ones(1)]);
        var error = Assert.Throws<ArgumentException>(() => gather([packed, packed]));
        Assert.Equal("gather: expected tensors, numbers or None at outputs, got PackedSequence", error.Message);
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

    private sealed record Output(Tensor Logits, Tensor Loss);
}
