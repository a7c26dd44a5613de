using System.IO.Compression;
using System.Text.Json;
using BridgeSharp.Data;
using BridgeSharp.Parity;
using TorchSharp;
using Xunit;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Data sets: files, normalization and order.</summary>
[Collection(nameof(Serial))]
public sealed class DataTests : IDisposable
{
    private readonly IdxFolder folder = new();

    public static TheoryData<string> Files => Vectors.Names("idx");

    public static TheoryData<string> Splits => Vectors.Names("fashion_mnist");

    public static TheoryData<string> Orders => Vectors.Names("order");

    /// <summary>Remove the files.</summary>
    public void Dispose() => folder.Dispose();

    /// <summary>Files are read or refused as the vectors have it. Spec: R10.1, R10.2.</summary>
    [Theory]
    [MemberData(nameof(Files))]
    public void Idx_vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("idx", name);
        var path = Path.Combine(folder.Name, "data.idx");
        File.WriteAllBytes(path, Convert.FromHexString(entry.GetProperty("file").GetString()!));
        Vectors.Check(entry, () =>
        {
            var values = Idx.read_idx(path);
            Same.Trees(Vectors.Tensor(entry.GetProperty("values"), "uint8", entry.GetProperty("shape")), values);
        });
    }

    /// <summary>A file that is refused throws an exception of its own kind. Spec: R10.2.</summary>
    [Fact]
    public void Refusal_is_an_idx_exception()
    {
        var path = Path.Combine(folder.Name, "labels.idx");
        File.WriteAllBytes(path, []);
        Assert.Contains("labels.idx", Assert.Throws<IdxException>(() => Idx.read_idx(path)).Message, StringComparison.Ordinal);
        Assert.Throws<FileNotFoundException>(() => Idx.read_idx(path + ".none"));
    }

    /// <summary>Batches and refusals are those of the vectors. Spec: R10.3, R10.4.</summary>
    [Theory]
    [MemberData(nameof(Splits))]
    public void Fashion_mnist_vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("fashion_mnist", name);
        folder.Write("train", Sizes("images"), i => i % 256, Sizes("labels")?.Select(label => (byte)label).ToArray());
        var dtype = entry.GetProperty("dtype").GetString()!;
        Vectors.Check(
            entry,
            () =>
            {
                using var data = new FashionMnist(folder.Name, train: true, Vectors.Dtypes[dtype]);
                var (grey, targets) = data.batch(Vectors.Tensor(entry.GetProperty("indices"), "int64"));
                Assert.Equal([entry.Items("indices").Count, 1, 28, 28], grey.shape);
                Same.Trees(Vectors.Tensor(entry.GetProperty("first"), dtype), grey[0].flatten().narrow(0, 0, 4));
                Same.Trees(Vectors.Tensor(entry.GetProperty("targets"), "int64"), targets);
            },
            folder.Name);

        long[]? Sizes(string member) => entry.GetProperty(member).ValueKind == JsonValueKind.Null
            ? null
            : [.. entry.Items(member).Select(size => size.GetInt64())];
    }

    /// <summary>A file may be gzipped, and is then preferred; each split has its own. Spec: R10.1, R10.3.</summary>
    [Fact]
    public void Gzipped_files_come_first()
    {
        using var scope = NewDisposeScope();
        folder.Write("train", [1, 28, 28], _ => 1, [1]);
        folder.Write("t10k", [1, 28, 28], _ => 2, [2]);
        var labels = Path.Combine(folder.Name, "t10k-labels-idx1-ubyte");
        var content = File.ReadAllBytes(labels);
        content[^1] = 5;
        using (var packed = new GZipStream(File.Create($"{labels}.gz"), CompressionLevel.Fastest))
        {
            packed.Write(content);
        }

        using var test = new FashionMnist(folder.Name, train: false, float64);
        using var train = new FashionMnist(folder.Name, train: true, float64);

        Assert.Equal(1, test.Count);
        Assert.Equal(5, test.batch(zeros(1, dtype: int64)).labels.item<long>());
        Assert.Equal(1, train.batch(zeros(1, dtype: int64)).labels.item<long>());
    }

    /// <summary>Permutations are those of the vectors. Spec: R10.5.</summary>
    [Theory]
    [MemberData(nameof(Orders))]
    public void Order_vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("order", name);
        var drawn = Order.order(
            entry.GetProperty("count").GetInt64(), entry.GetProperty("seed").GetInt64(), entry.GetProperty("epoch").GetInt64());
        Assert.Equal(entry.Items("first").Select(item => item.GetInt64()), drawn.data<long>().ToArray().Take(8));
        Assert.Equal(entry.GetProperty("sha256").GetString(), Digest.digest([new("order", drawn)]));
    }

    /// <summary>Drawing an order draws nothing from the generator of dropout and weights. Spec: R10.5.</summary>
    [Fact]
    public void Order_leaves_the_default_generator_alone()
    {
        using var scope = NewDisposeScope();
        var before = Same.Bits(random.get_rng_state());
        Assert.Equal([0, 1, 2, 3, 4], Order.order(5, 0, 0).data<long>().ToArray().Order());
        Assert.Equal(before, Same.Bits(random.get_rng_state()));
    }
}
