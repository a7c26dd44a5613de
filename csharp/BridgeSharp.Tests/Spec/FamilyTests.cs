using BridgeSharp.Parity;
using TorchSharp;
using Xunit;

namespace BridgeSharp.Tests.Spec;

/// <summary>The battery that tells build families apart.</summary>
[Collection(nameof(Serial))]
public sealed class FamilyTests
{
    public static TheoryData<string> Cases => Vectors.Names("family");

    /// <summary>What every build computes alike has the digests of the vectors. Spec: R12.1.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
        => Assert.Equal(Vectors.Find("family", name).GetProperty("sha256").GetString(), Family.battery()[name]);

    /// <summary>The same build gives the same digests again, each operation its own in each dtype. Spec: R12.1, R12.2.</summary>
    [Fact]
    public void Battery_repeats_itself()
    {
        var before = Same.Live();
        var digests = Family.battery();
        Assert.Equal(digests, Family.battery());
        Assert.Equal(digests.Count, digests.Values.Distinct().Count());
        Assert.Equal(digests.Keys.Take(digests.Count / 2).Select(key => key.Replace("float32", "float64", StringComparison.Ordinal)), digests.Keys.Skip(digests.Count / 2));
        Assert.Equal(before, torch.Tensor.TotalCount);
    }
}
