using BridgeSharp.Data;
using TorchSharp;
using Xunit;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>What a loader reads from, and the types of its batches.</summary>
[Collection(nameof(Serial))]
public sealed class SamplesTests
{
    /// <summary>A data set of TorchSharp, an array and Fashion-MNIST are read as they are. Spec: R17.4.</summary>
    [Fact]
    public void Other_data_sets_are_read()
    {
        using var scope = NewDisposeScope();
        var squares = new Loader<Dictionary<string, Tensor>>(new Squares(), 2, shuffle: false, prefetch: 1).ToList();
        Same.Trees(tensor(new[] { 0.0, 1.0 }), squares[0]["square"]);
        Same.Trees(tensor(new[] { 4.0 }), squares[1]["square"]);
        (Tensor, int)[] pairs = [(ones(2), 1), (zeros(2), 0)];
        var (images, labels) = Assert.Single(new Loader<(Tensor, Tensor)>(pairs, 2, shuffle: false));
        Same.Trees((tensor(new float[] { 1, 1, 0, 0 }).reshape(2, 2), tensor(new long[] { 1, 0 })), (images, labels));
        using var folder = new IdxFolder();
        folder.Write("train", [5, 28, 28], i => i % 256, [0, 1, 2, 3, 4]);
        using var data = new FashionMnist(folder.Name, train: true, float32);
        var read = new Loader<(object, object)>(data, 3, seed: 2).ToList();
        Same.Trees(data.batch(Order.order(5, 2, 0).narrow(0, 0, 3)), read[0]);
    }

    /// <summary>A batch gets the type that the caller names, or is refused. Spec: R17.4, R17.5.</summary>
    [Fact]
    public void Batches_have_the_type_that_is_named()
    {
        using var scope = NewDisposeScope();
        var data = (ones(2), new Dictionary<string, object?> { ["x"] = zeros(2), ["none"] = null });
        var (tensor, rest) = new Loader<(object, Dictionary<string, Tensor>)>((ones(2), new Dictionary<string, object> { ["x"] = zeros(2) }), 2).Single();
        Assert.IsType<Tensor>(tensor, exactMatch: false);
        Assert.Equal(["x"], rest.Keys);
        Assert.Null(new Loader<(Tensor, Dictionary<string, Tensor?>)>(data, 2).Single().Item2["none"]);
        var named = Assert.IsType<Dictionary<string, object>>(
            Assert.Single(new Loader<object>(new[] { new Dictionary<string, int> { ["n"] = 1 } }, 1)));
        Assert.IsType<Tensor>(named["n"], exactMatch: false);
        var error = Assert.Throws<ArgumentException>(() => new Loader<(Tensor, Tensor)>(ones(2), 2, prefetch: 0).Single());
        Assert.Equal(
            "Loader: expected batches of type System.ValueTuple`2[TorchSharp.torch+Tensor,TorchSharp.torch+Tensor], got a tensor of shape (2,)",
            error.Message);
        Assert.Throws<ArgumentException>(() => new Loader<(Tensor, Tensor, Tensor)>((ones(2), ones(2)), 2).Single());
        Assert.Throws<ArgumentException>(() => new Loader<(Tensor, string)>((ones(2), ones(2)), 2).Single());
        Assert.Throws<ArgumentException>(() => new Loader<Dictionary<string, string>>(new Dictionary<string, Tensor> { ["x"] = ones(2) }, 2).Single());
        error = Assert.Throws<ArgumentException>(() => new Loader<object>(new[] { new Point(1, 2) }, 2).Single());
        Assert.Equal("Loader: expected samples that can hold tensors, got Point", error.Message);
    }

    private sealed record Point(int X, int Y);

    private sealed class Squares : utils.data.Dataset
    {
        public override long Count => 3;

        public override Dictionary<string, Tensor> GetTensor(long index) => new() { ["square"] = tensor((double)(index * index)) };
    }
}
