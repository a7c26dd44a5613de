using BridgeSharp.Parallel;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp;

/// <summary>A linear layer split by its outputs: each part has all inputs, and some of the outputs.</summary>
/// <remarks>
/// Shapes: <c>(*, in_features)</c> to <c>(*, out_features)</c>.
/// Spec: R24.4, R24.5, R24.6. Source: Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053
/// </remarks>
public sealed class ColumnParallelLinear : SplitLayer
{
    /// <summary>Split the layer.</summary>
    /// <param name="layer">The whole layer; it is copied from, and not changed.</param>
    /// <param name="devices">One per part; the outputs are gathered on the first.</param>
    /// <exception cref="ArgumentException">No device, or more than there are output features.</exception>
    public ColumnParallelLinear(Linear layer, IReadOnlyList<Device> devices)
        : base(nameof(ColumnParallelLinear), Parts(layer, devices), devices, dim: 0)
    {
    }

    /// <summary>Give every part all inputs, and put their outputs side by side.</summary>
    /// <param name="input">Vectors <c>(*, in_features)</c>.</param>
    /// <returns>Vectors <c>(*, out_features)</c>, fresh.</returns>
    public override Tensor forward(Tensor input)
    {
        using var scope = NewDisposeScope();
        return bridge.gather(Run([.. parts.Select(_ => input)]), devices[0], -1).MoveToOuterDisposeScope();
    }

    private static IReadOnlyList<Linear> Parts(Linear layer, IReadOnlyList<Device> devices)
    {
        Devices.Check(nameof(ColumnParallelLinear), devices);
        using var scope = NewDisposeScope();
        var sizes = Shares(nameof(ColumnParallelLinear), layer.out_features, "output features", devices.Count);
        var biases = layer.bias?.split(sizes) ?? new Tensor?[sizes.Length];
        return [.. layer.weight.split(sizes).Zip(biases, devices)
            .Select(part => nn.Linear(Own(part.First, part.Third), Own(part.Second, part.Third)))];
    }
}

/// <summary>A linear layer split by its inputs: each part has some of the inputs, and all outputs.</summary>
/// <remarks>
/// The outputs are added in the order of the parts; part 0 has the bias.
/// Shapes: <c>(*, in_features)</c> to <c>(*, out_features)</c>.
/// Spec: R24.4, R24.5, R24.6. Source: Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053
/// </remarks>
public sealed class RowParallelLinear : SplitLayer
{
    private readonly long[] sizes;

    /// <summary>Split the layer.</summary>
    /// <param name="layer">The whole layer; it is copied from, and not changed.</param>
    /// <param name="devices">One per part; the outputs are added on the first.</param>
    /// <exception cref="ArgumentException">No device, or more than there are input features.</exception>
    public RowParallelLinear(Linear layer, IReadOnlyList<Device> devices)
        : base(nameof(RowParallelLinear), Parts(layer, devices), devices, dim: 1)
        => sizes = [.. parts.Cast<Linear>().Select(part => part.in_features)];

    /// <summary>Give every part its inputs, and add their outputs.</summary>
    /// <param name="input">Vectors <c>(*, in_features)</c>.</param>
    /// <returns>Vectors <c>(*, out_features)</c>, fresh.</returns>
    /// <exception cref="ArgumentException">Another number of input features.</exception>
    public override Tensor forward(Tensor input)
    {
        if (input.dim() == 0 || input.size(-1) != sizes.Sum())
        {
            throw new ArgumentException(
                $"RowParallelLinear: expected inputs of {sizes.Sum()} features, got shape {Text.Shape(input.shape)}");
        }

        using var scope = NewDisposeScope();
        var outputs = Run(input.split(sizes, -1));
        return outputs.Aggregate((total, output) => total + output.to(devices[0])).MoveToOuterDisposeScope();
    }

    private static IReadOnlyList<Linear> Parts(Linear layer, IReadOnlyList<Device> devices)
    {
        Devices.Check(nameof(RowParallelLinear), devices);
        using var scope = NewDisposeScope();
        var sizes = Shares(nameof(RowParallelLinear), layer.in_features, "input features", devices.Count);
        return [.. layer.weight.split(sizes, 1).Zip(devices)
            .Select((part, index) => nn.Linear(Own(part.First, part.Second), Own(index == 0 ? layer.bias : null, part.Second)))];
    }
}

/// <summary>A convolution split by its output channels: each part sees the whole image.</summary>
/// <remarks>
/// Shapes: <c>(N, in_channels, H, W)</c> to <c>(N, out_channels, H', W')</c>, both also without N.
/// Spec: R24.4, R24.5, R24.6. Source: Krizhevsky 2014, https://arxiv.org/abs/1404.5997
/// </remarks>
public sealed class ChannelParallelConv2d : SplitLayer
{
    /// <summary>Split the layer.</summary>
    /// <param name="layer">The whole layer, of one group; it is copied from, and not changed.</param>
    /// <param name="devices">One per part; the outputs are gathered on the first.</param>
    /// <exception cref="ArgumentException">No device, more than there are output channels, or a layer of several groups.</exception>
    public ChannelParallelConv2d(Conv2d layer, IReadOnlyList<Device> devices)
        : base(nameof(ChannelParallelConv2d), Parts(layer, devices), devices, dim: 0)
    {
    }

    /// <summary>Give every part the image, and stack their channels.</summary>
    /// <param name="input">Images <c>(N, in_channels, H, W)</c>, also without N.</param>
    /// <returns>Images <c>(N, out_channels, H', W')</c>, fresh.</returns>
    public override Tensor forward(Tensor input)
    {
        using var scope = NewDisposeScope();
        return bridge.gather(Run([.. parts.Select(_ => input)]), devices[0], -3).MoveToOuterDisposeScope();
    }

    private static IReadOnlyList<Conv2d> Parts(Conv2d layer, IReadOnlyList<Device> devices)
    {
        Devices.Check(nameof(ChannelParallelConv2d), devices);
        if (layer.groups != 1)
        {
            throw new ArgumentException($"ChannelParallelConv2d: expected a convolution of 1 group, got {layer.groups}");
        }

        using var scope = NewDisposeScope();
        var sizes = Shares(nameof(ChannelParallelConv2d), layer.out_channels, "output channels", devices.Count);
        var biases = layer.bias?.split(sizes) ?? new Tensor?[sizes.Length];
        return [.. layer.weight.split(sizes).Zip(biases, devices)
            .Select(part => Part(layer, Own(part.First, part.Third), Own(part.Second, part.Third)))];
    }

    /// <summary>Make a part of a convolution, with its options; on <c>meta</c> nothing is drawn.</summary>
    private static Conv2d Part(Conv2d layer, Parameter weight, Parameter? bias)
    {
        var part = nn.Conv2d(
            layer.in_channels,
            weight.size(0),
            Pair(layer.kernel_size),
            Pair(layer.stride),
            dilation: Pair(layer.dilation),
            padding_mode: layer.padding_mode,
            bias: false,
            device: META);
        if (layer.padding is { } padding)
        {
            part.SetPadding(padding);
        }
        else
        {
            part.SetPadding(layer.padding_type!.Value);
        }

        part.weight = weight;
        part.bias = bias;
        return part;
    }

    private static (long, long) Pair(long[] sizes) => (sizes[0], sizes[1]);
}
