using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Trace;

/// <summary>Shows the gradient of a tensor when the backward comes there: TorchSharp has no hooks of tensors.</summary>
internal static class GradientTap
{
    private const string Key = "seen";

    /// <summary>Pass a tensor on through a function that shows the gradient and leaves it as it is.</summary>
    /// <param name="output">The tensor.</param>
    /// <param name="seen">Is shown the gradient.</param>
    /// <returns>A copy, since a tensor that a function passes on as it is could not be changed in place.</returns>
    public static Tensor Put(Tensor output, Action<Tensor> seen) => Tap.apply(output, seen);

#pragma warning disable CA1812 // TorchSharp makes it.
    private sealed class Tap : autograd.SingleTensorFunction<Tap>
#pragma warning restore CA1812
    {
        public override string Name => nameof(GradientTap);

        public override Tensor forward(autograd.AutogradContext ctx, params object[] vars)
        {
            ctx.save_data(Key, vars[1]);
            return ((Tensor)vars[0]).clone();
        }

        public override List<Tensor> backward(autograd.AutogradContext ctx, Tensor grad_output)
        {
            ((Action<Tensor>)ctx.get_data(Key))(grad_output);
            return [grad_output, null!];
        }
    }
}
