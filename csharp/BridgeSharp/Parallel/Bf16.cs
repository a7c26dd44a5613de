using BridgeSharp.Parallel;
using static TorchSharp.torch;
using functional = TorchSharp.torch.nn.functional;

namespace BridgeSharp;

public static partial class bridge
{
    /// <summary>Multiply matrices in bfloat16, as <c>torch.matmul</c> does.</summary>
    /// <remarks>
    /// Both are rounded to bfloat16, and so is the product, which is float32 again; the same holds for the gradients on
    /// their way back. Spec: R18.1.
    /// </remarks>
    /// <param name="input">float32, of any shape that <c>torch.matmul</c> takes.</param>
    /// <param name="other">The same.</param>
    /// <returns>The product, float32, fresh.</returns>
    /// <exception cref="ArgumentException">Another dtype.</exception>
    public static Tensor bf16_matmul(Tensor input, Tensor other)
        => Bf16Product.Of("bf16_matmul", (left, right, _) => left.matmul(right), input, (nameof(other), other), null);

    /// <summary>Apply a linear map in bfloat16, as <c>torch.nn.functional.linear</c> does.</summary>
    /// <remarks>Spec: R18.1.</remarks>
    /// <param name="input">float32 <c>(*, K)</c>.</param>
    /// <param name="weight">float32 <c>(M, K)</c>.</param>
    /// <param name="bias">float32 <c>(M,)</c>.</param>
    /// <returns><c>(*, M)</c>, float32, fresh.</returns>
    /// <exception cref="ArgumentException">Another dtype.</exception>
    public static Tensor bf16_linear(Tensor input, Tensor weight, Tensor? bias = null)
        => Bf16Product.Of("bf16_linear", functional.linear, input, (nameof(weight), weight), bias);
}
