using TorchSharp.Modules;
using static TorchSharp.torch;
using static TorchSharp.torch.nn;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Models;

/// <summary>Two convolutions with average pooling, then two linear layers: 1-20-50 channels, 800-128-10.</summary>
/// <remarks>Shapes: <c>(N, 1, 28, 28)</c> to <c>(N, 10)</c>.</remarks>
public sealed class LeNet : Module<Tensor, Tensor>
{
    private readonly Conv2d conv1, conv2;
    private readonly Linear fc1, fc2;

    /// <summary>Initialize as PyTorch's layers do, from the default generator.</summary>
    public LeNet()
        : base(nameof(LeNet))
    {
        conv1 = Conv2d(1, 20, 3);
        conv2 = Conv2d(20, 50, 5);
        fc1 = Linear(800, 128);
        fc2 = Linear(128, 10);
        RegisterComponents();
    }

    /// <summary>Classify images.</summary>
    /// <param name="input">Images <c>(N, 1, 28, 28)</c>.</param>
    /// <returns>Logits <c>(N, 10)</c>.</returns>
    public override Tensor forward(Tensor input)
    {
        var x = avg_pool2d(relu(conv1.call(input)), 2);
        x = avg_pool2d(relu(conv2.call(x)), 2);
        x = relu(fc1.call(x.flatten(1)));
        return fc2.call(x);
    }
}
