using System.Text.Json;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Clipping gradients.</summary>
[Collection(nameof(Serial))]
public sealed class ClipTests
{
    public static TheoryData<string> Cases => Vectors.Names("clip");

    /// <summary>Gradients, norms and refusals are those of the vectors. Spec: R7.4.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("clip", name);
        var parameters = entry.Items("gradients").Select(gradient =>
        {
            var given = gradient.ValueKind == JsonValueKind.Null ? null : Vectors.Tensor(gradient);
            return new Parameter(zeros_like(given ?? zeros(1, dtype: float64))) { grad = given };
        }).ToList();
        Vectors.Check(entry, () =>
        {
            var norm = clip_gradients(parameters, Limit("max_norm"), Limit("max_value"));
            Assert.Equal(Nullable(entry.GetProperty("norm")), norm);
            foreach (var (parameter, expected) in parameters.Zip(entry.Items("expected")))
            {
                Assert.Equal(expected.ValueKind == JsonValueKind.Null, parameter.grad is null);
                if (parameter.grad is { } gradient)
                {
                    Same.Within(Vectors.Tensor(expected), gradient, entry.Optional("relative")?.GetDouble() ?? 0);
                }
            }
        });

        double? Limit(string limit) => entry.Optional(limit) is { } value ? Nullable(value) : null;

        static double? Nullable(JsonElement value) => value.ValueKind == JsonValueKind.Null ? null : Vectors.Number(value);
    }
}
