using TorchSharp;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Products in bfloat16, alone and in layers.</summary>
[Collection(nameof(Serial))]
public sealed class Bf16Tests
{
    public static TheoryData<string> Cases => Vectors.Names("bf16");

    /// <summary>Products, gradients and refusals are those of the vectors. Spec: R18.1.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("bf16", name);
        var operands = entry.Members("operands").ToDictionary(
            part => part.Name,
            part => Vectors.Tensor(part.Value, entry.Optional("dtypes")?.Optional(part.Name)?.GetString() ?? "float32").requires_grad_());
        Vectors.Check(entry, () =>
        {
            var output = entry.GetProperty("function").GetString() == "bf16_matmul"
                ? bf16_matmul(operands["input"], operands["other"])
                : bf16_linear(operands["input"], operands["weight"], operands.GetValueOrDefault("bias"));
            Same.Trees(Vectors.Tensor(entry.GetProperty("expected"), "float32"), output.detach());
            var actual = autograd.grad([output], [.. operands.Values], [Vectors.Tensor(entry.GetProperty("gradient"), "float32")]);
            Same.Trees(entry.Members("gradients").Select(part => Vectors.Tensor(part.Value, "float32")).ToList(), actual.ToList());
        });
    }

    /// <summary>A layer uses each of its options: it gives what it gives when it is bfloat16 as a whole. Spec: R18.2, R18.4.</summary>
    [Fact]
    public void Options_of_layers_hold()
    {
        using var scope = NewDisposeScope();
        Check(nn.Linear(5, 3), [2, 4, 5]);
        Check(nn.Linear(5, 3, hasBias: false), [5]);
        Check(nn.Conv1d(4, 6, 3, stride: 2, padding: 2, dilation: 2, groups: 2), [3, 4, 11]);
        Check(nn.Conv1d(2, 3, 3, Padding.Same, bias: false), [2, 2, 7]);
        Check(nn.Conv2d(4, 6, 3, stride: 2, padding: 2, dilation: 2, groups: 2), [3, 4, 11, 9]);
        Check(nn.Conv2d(4, 6, (3, 2), padding: (1, 0)), [4, 11, 9]);
        Check(nn.Conv2d(2, 3, 3, Padding.Same), [2, 2, 7, 8]);
        Check(nn.Conv3d(4, 6, 3, stride: 2, padding: 2, dilation: 2, groups: 2), [3, 4, 11, 9, 10]);
        Check(nn.Conv3d(2, 3, 3, Padding.Valid), [1, 2, 7, 8, 5]);

        static void Check(nn.Module<Tensor, Tensor> layer, long[] shape)
        {
            var input = randn(shape);
            using var whole = replicate(layer, [CPU, CPU])[1].to(bfloat16);
            var expected = whole.call(input.to(bfloat16)).to(float32);

            Same.Trees(expected, mixed_precision(layer).call(input));
        }
    }
}
