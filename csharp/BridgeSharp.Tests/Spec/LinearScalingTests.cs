using Xunit;

namespace BridgeSharp.Tests.Spec;

/// <summary>Scaling the learning rate for several replicas.</summary>
public sealed class LinearScalingTests
{
    public static TheoryData<string> Cases => Vectors.Names("linear_scaling");

    /// <summary>Factors and refusals are those of the vectors. Spec: R7.6.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        var entry = Vectors.Find("linear_scaling", name);
        Vectors.Check(entry, () =>
        {
            var scaling = new LinearScaling(Vectors.Number(entry.GetProperty("factor")), entry.GetProperty("warm_up").GetInt32());
            Assert.Equal(entry.Items("expected").Select(Vectors.Number), entry.Items("expected").Select((_, update) => scaling.at(update)));
        });
    }
}
