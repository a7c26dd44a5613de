using TorchSharp.Modules;
using static TorchSharp.torch;
using static TorchSharp.torch.nn;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Models;

/// <summary>Two convolutions with batch normalization, and a way around them.</summary>
/// <remarks>Shapes: <c>(N, in_channels, H, W)</c> to <c>(N, channels, H / stride, W / stride)</c>.</remarks>
public sealed class Residual : Module<Tensor, Tensor>
{
    private readonly Conv2d conv1;
    private readonly BatchNorm2d bn1;
    private readonly Conv2d conv2;
    private readonly BatchNorm2d bn2;
    private readonly Conv2d? around;

    /// <summary>Initialize as PyTorch's layers do, from the default generator.</summary>
    /// <param name="in_channels">Of the input.</param>
    /// <param name="channels">Of the output.</param>
    /// <param name="stride">Of the first convolution.</param>
    public Residual(long in_channels, long channels, long stride)
        : base(nameof(Residual))
    {
        conv1 = Conv2d(in_channels, channels, 3, stride, 1);
        bn1 = BatchNorm2d(channels);
        conv2 = Conv2d(channels, channels, 3, 1, 1);
        bn2 = BatchNorm2d(channels);
        var same = in_channels == channels && stride == 1;
        around = same ? null : Conv2d(in_channels, channels, 1, stride);
        RegisterComponents();
    }

    /// <summary>Add what the convolutions make to what goes around them.</summary>
    /// <param name="input">Images.</param>
    /// <returns>Images.</returns>
    public override Tensor forward(Tensor input)
    {
        var y = relu(bn1.call(conv1.call(input)));
        y = bn2.call(conv2.call(y));
        return relu(y + (around is null ? input : around.call(input)));
    }
}

/// <summary>Eight residual blocks in four stages, for images from 8 by 8 points on.</summary>
/// <remarks>Shapes: <c>(N, in_channels, H, W)</c> to <c>(N, classes)</c>.</remarks>
public sealed class ResNet18 : Module<Tensor, Tensor>
{
    private const int Blocks = 2;
    private static readonly long[] Channels = [64, 128, 256, 512];

    private readonly Conv2d conv;
    private readonly BatchNorm2d bn;
    private readonly Sequential blocks;
    private readonly Linear fc;

    /// <summary>Initialize as PyTorch's layers do, from the default generator.</summary>
    /// <param name="in_channels">Of the images.</param>
    /// <param name="classes">How many.</param>
    public ResNet18(long in_channels = 1, long classes = 10)
        : base(nameof(ResNet18))
    {
        conv = Conv2d(in_channels, Channels[0], 3, 1, 1);
        bn = BatchNorm2d(Channels[0]);
        var list = new List<Module<Tensor, Tensor>>();
        var inner = Channels[0];
        for (var stage = 0; stage < Channels.Length; stage++)
        {
            for (var block = 0; block < Blocks; block++)
            {
                list.Add(new Residual(inner, Channels[stage], stage > 0 && block == 0 ? 2 : 1));
                inner = Channels[stage];
            }
        }

        blocks = Sequential(list);
        fc = Linear(inner, classes);
        RegisterComponents();
    }

    /// <summary>Classify images.</summary>
    /// <param name="input">Images <c>(N, in_channels, H, W)</c>.</param>
    /// <returns>Logits <c>(N, classes)</c>.</returns>
    public override Tensor forward(Tensor input)
    {
        var x = relu(bn.call(conv.call(input)));
        x = blocks.call(x);
        return fc.call(x.mean([2, 3]));
    }
}
