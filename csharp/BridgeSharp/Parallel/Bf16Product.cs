using System.Reflection;
using BridgeSharp.Parity;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;
using functional = TorchSharp.torch.nn.functional;

namespace BridgeSharp.Parallel;

/// <summary>Products in bfloat16 whose operands and results are float32.</summary>
internal static class Bf16Product
{
    private static readonly FieldInfo Margins =
        typeof(Convolution).GetField("_reversed_padding_repeated_twice", BindingFlags.Instance | BindingFlags.NonPublic)
            ?? throw new MissingFieldException(nameof(Convolution), "_reversed_padding_repeated_twice");

    /// <summary>Round the operands to bfloat16, run the operation, and return its result in float32.</summary>
    public static Tensor Of(
        string name, Func<Tensor, Tensor, Tensor?, Tensor> operation, Tensor input, (string Name, Tensor Value) other, Tensor? bias)
    {
        using var scope = NewDisposeScope();
        return operation(Rounded(nameof(input), input), Rounded(other.Name, other.Value), bias is null ? null : Rounded(nameof(bias), bias))
            .to(float32).MoveToOuterDisposeScope();

        Tensor Rounded(string operand, Tensor value) => value.dtype == float32
            ? value.to(bfloat16)
            : throw new ArgumentException($"{name}: expected {operand} of float32, got {Digest.dtype_name(value.dtype)}");
    }

    /// <summary>Apply a layer in bfloat16.</summary>
    public static Tensor Of(nn.Module<Tensor, Tensor> layer, Tensor input)
        => layer is Linear linear ? bridge.bf16_linear(input, linear.weight, linear.bias) : Convolve((Convolution)layer, input);

    /// <summary>Convolve in bfloat16; what a padding mode copies is copied in float32.</summary>
    private static Tensor Convolve(Convolution layer, Tensor input)
    {
        using var scope = NewDisposeScope();
        var padding = layer.padding;
        if (layer.padding_mode != PaddingModes.Zeros)
        {
            input = functional.pad(input, (long[])Margins.GetValue(layer)!, layer.padding_mode);
            padding = new long[layer.kernel_size.Length];
        }

        return Of($"conv{layer.kernel_size.Length}d", Product, input, ("weight", layer.weight), layer.bias).MoveToOuterDisposeScope();

        Tensor Product(Tensor x, Tensor weight, Tensor? bias) => (layer, padding) switch
        {
            (Conv1d, null) => functional.conv1d_padding(x, weight, bias, layer.stride[0], layer.padding_type!.Value, layer.dilation[0], layer.groups),
            (Conv1d, _) => functional.conv1d(x, weight, bias, layer.stride[0], padding[0], layer.dilation[0], layer.groups),
            (Conv2d, null) => functional.conv2d_padding(x, weight, bias, layer.stride, layer.padding_type!.Value, layer.dilation, layer.groups),
            (Conv2d, _) => functional.conv2d(x, weight, bias, layer.stride, padding, layer.dilation, layer.groups),
            (_, null) => functional.conv3d_padding(x, weight, bias, layer.stride, layer.padding_type!.Value, layer.dilation, layer.groups),
            _ => functional.conv3d(x, weight, bias, layer.stride, padding, layer.dilation, layer.groups),
        };
    }
}
