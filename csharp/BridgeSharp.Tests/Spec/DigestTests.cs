using BridgeSharp.Parity;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Digests of tensors.</summary>
[Collection(nameof(Serial))]
public sealed class DigestTests
{
    public static TheoryData<string> Cases => Vectors.Names("digest");

    /// <summary>Digests are those of the vectors. Spec: R11.1.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("digest", name);
        var tensors = entry.Items("tensors").Select(pair => KeyValuePair.Create(pair[0].GetString()!, (Tensor)Vectors.Tree(pair[1])!));
        Assert.Equal(entry.GetProperty("sha256").GetString(), Digest.digest(tensors));
    }

    /// <summary>A tensor that is transposed, strided or expanded has the digest of its copy. Spec: R11.1.</summary>
    [Fact]
    public void Layout_does_not_count()
    {
        using var scope = NewDisposeScope();
        var table = arange(24).reshape(4, 6);
        foreach (var view in new[] { table.t(), table[.., 1..5], table[1..3, 2..5], table[0].expand(3, 6), table[0..0] })
        {
            Assert.Equal(Digest.digest([new("x", view.clone().contiguous())]), Digest.digest([new("x", view)]));
        }
    }

    /// <summary>A parameter has the digest of its values, and digesting leaves no tensor behind. Spec: R11.1.</summary>
    [Fact]
    public void Gradients_do_not_count()
    {
        using var scope = NewDisposeScope();
        var values = tensor(new[] { 1.5f, 2.5f });
        var parameter = new Parameter(values.clone());
        var before = Same.Live();
        Assert.Equal(Digest.digest([new("x", values)]), Digest.digest([new("x", parameter)]));
        Assert.Equal(before, Tensor.TotalCount);
    }
}
