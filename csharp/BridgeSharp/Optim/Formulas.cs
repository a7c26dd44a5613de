using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>What the formulas of several optimizers share.</summary>
internal static class Formulas
{
    /// <summary>Make a tensor of zeros like a parameter.</summary>
    public static Tensor Zeros(Tensor parameter) => zeros_like(parameter).DetachFromDisposeScope();

    /// <summary>Make a counter or a factor: a tensor of one number, float64 where that is the default dtype.</summary>
    public static Tensor Number(double value, bool old)
    {
        var usual = get_default_dtype();
        return tensor(value, dtype: old || usual == float64 ? usual : float32).DetachFromDisposeScope();
    }

    /// <summary>Turn the gradient to climb, and add weight decay.</summary>
    public static Tensor Prepared(Tensor gradient, Tensor parameter, bool maximize, double decay)
    {
        var turned = maximize ? -gradient : gradient;
        return decay == 0 ? turned : turned.add(parameter, alpha: decay);
    }

    /// <summary>Turn the gradient to climb, and apply weight decay: to the gradient, or decoupled to the parameter itself.</summary>
    public static Tensor Decayed(Tensor gradient, Tensor parameter, bool maximize, double lr, double decay, bool decoupled)
    {
        if (!decoupled)
        {
            return Prepared(gradient, parameter, maximize, decay);
        }

        parameter.scale_(1 - (lr * decay));
        return Prepared(gradient, parameter, maximize, 0);
    }

    /// <summary>Multiply by a number as Python's <c>mul_</c> does.</summary>
    /// <remarks>TorchSharp's has the number at half precision, PyTorch's kernel in float32.</remarks>
    public static Tensor scale_(this Tensor tensor, double by)
        => IsHalf(tensor) ? tensor.mul_(torch.tensor(by, dtype: float32, device: tensor.device)) : tensor.mul_(by);

    /// <summary>Move a mean towards a gradient: by <c>lerp_</c>, in PyTorch 1.13 by <c>mul_</c> and <c>add_</c>.</summary>
    /// <remarks>TorchSharp takes the weight of <c>lerp_</c> as a tensor only; PyTorch's kernel has it in float32 at half precision.</remarks>
    public static void Move(Tensor mean, Tensor gradient, double keep, bool old)
    {
        if (old)
        {
            mean.scale_(keep).add_(gradient, alpha: 1 - keep);
        }
        else if (IsHalf(mean))
        {
            mean.copy_(mean.to(float32).lerp_(gradient.to(float32), tensor(1 - keep, dtype: float32, device: mean.device)));
        }
        else
        {
            mean.lerp_(gradient, tensor(1 - keep, dtype: mean.dtype, device: mean.device));
        }
    }

    /// <summary>Move a mean of squares towards that of a gradient.</summary>
    public static Tensor MoveSquare(Tensor mean, Tensor gradient, double keep)
        => mean.scale_(keep).addcmul_(gradient, gradient, value: 1 - keep);

    /// <summary>Take a square root as Python does: by <c>** 0.5</c>, in PyTorch 1.13 by <c>math.sqrt</c>.</summary>
    public static double Root(double value, bool old) => old ? Math.Sqrt(value) : Math.Pow(value, 0.5);

    private static bool IsHalf(Tensor tensor) => tensor.dtype is ScalarType.Float16 or ScalarType.BFloat16;
}
