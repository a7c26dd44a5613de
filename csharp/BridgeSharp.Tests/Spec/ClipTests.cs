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

    /// <summary>An index may be there twice: its values are added first. Spec: R7.4.</summary>
    [Theory]
    [InlineData(2.5, null)]
    [InlineData(null, 0.5)]
    [InlineData(8.0, 3.5)]
    public void Sparse_gradients_are_clipped_as_dense_ones(double? max_norm, double? max_value)
    {
        using var scope = NewDisposeScope();
        var sparse = sparse_coo_tensor(tensor(new long[] { 2, 0, 2 }).unsqueeze(0), tensor(new[] { 3.0, 0, -4, 0.25, 1, 0 }).view(3, 2), [4, 2]);
        var none = sparse_coo_tensor(zeros(1, 0, dtype: int64), zeros(0, 2, dtype: float64), [4, 2]);
        var (table, empty, dense) = (Made(sparse), Made(none), Made(sparse.to_dense()));

        var norm = clip_gradients([table, empty], max_norm, max_value);

        Assert.Equal(clip_gradients([dense], max_norm, max_value), norm);
        Assert.True(table.grad!.is_sparse);
        Same.Within(dense.grad!, table.grad!.to_dense(), 1e-15);

        static Parameter Made(Tensor gradient) => new(zeros(4, 2, dtype: float64)) { grad = gradient };
    }

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
