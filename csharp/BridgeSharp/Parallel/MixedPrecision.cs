using BridgeSharp.Parallel;
using BridgeSharp.Parity;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp;

public static partial class bridge
{
    /// <summary>Compute the products of a model's layers in bfloat16, and all else in float32.</summary>
    /// <remarks>
    /// <c>Linear</c>, <c>Conv1d</c>, <c>Conv2d</c> and <c>Conv3d</c> round their input, weight and bias to bfloat16, and
    /// their result is float32 again. Parameters, gradients and optimizers stay float32, names of parameters stay what
    /// they are. Functions that a forward of the user's own calls stay float32: <see cref="bf16_matmul"/> and
    /// <see cref="bf16_linear"/> are for those. Again is harmless. Spec: R18.2, R18.3, R18.4.
    /// </remarks>
    /// <param name="model">float32; it is changed in place, before it is replicated.</param>
    /// <returns>The model itself.</returns>
    /// <exception cref="ArgumentException">A layer that is on neither list, another dtype, or no product at all; in C# also what passes the layers' hooks by.</exception>
    public static T mixed_precision<T>(T model)
        where T : nn.Module
    {
        var layers = MixedPrecision.Layers(model);
        if (layers.Count == 0)
        {
            throw new ArgumentException($"mixed_precision: expected at least 1 layer of {string.Join(", ", MixedPrecision.Products)}, got 0");
        }

        foreach (var (name, tensor) in model.named_parameters().Select(p => (p.name, (Tensor)p.parameter)).Concat(model.named_buffers()))
        {
            if (tensor.is_floating_point() && tensor.dtype != float32)
            {
                throw new ArgumentException($"mixed_precision: expected {name} of float32, got {Digest.dtype_name(tensor.dtype)}");
            }
        }

        layers.ForEach(Bf16Hooks.Register);
        return model;
    }
}

/// <summary>Which layers compute in bfloat16 and which stay float32.</summary>
internal static class MixedPrecision
{
    /// <summary>The layers whose product is in bfloat16.</summary>
    public static readonly IReadOnlyList<string> Products = ["Linear", "Conv1d", "Conv2d", "Conv3d"];

    /// <summary>The layers without a product, which stay float32; in any number of dimensions.</summary>
    public static readonly IReadOnlySet<string> Float32 = new HashSet<string>
    {
        "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "Identity",
        "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
        "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "ReLU", "ReLU6", "RReLU", "SELU", "SiLU",
        "Sigmoid", "Softmax", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink",
        "Threshold",
        "AdaptiveAvgPool", "AdaptiveMaxPool", "AvgPool", "FractionalMaxPool", "LPPool", "MaxPool",
        "MaxUnpool",
        "BatchNorm", "GroupNorm", "InstanceNorm", "LayerNorm", "LocalResponseNorm",
        "AlphaDropout", "Dropout", "FeatureAlphaDropout", "Embedding", "EmbeddingBag",
        "ConstantPad", "ReflectionPad", "ReplicationPad", "ZeroPad",
        "ChannelShuffle", "Flatten", "Fold", "PixelShuffle", "PixelUnshuffle", "Unflatten", "Unfold",
        "Upsample",
        "BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "HuberLoss", "KLDivLoss", "L1Loss",
        "MSELoss", "NLLLoss", "SmoothL1Loss",
    };

    /// <summary>The layers whose products cannot be in bfloat16 in both languages; in any number of dimensions.</summary>
    public static readonly IReadOnlySet<string> Inside = new HashSet<string>
    {
        "GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCell", "MultiheadAttention",
        "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
        "TransformerEncoderLayer", "Bilinear", "ConvTranspose",
    };

    /// <summary>TorchSharp's classes that are there to be derived from.</summary>
    private static readonly HashSet<string> Bases = ["Module", "HookableModule", "ParameterLessModule", "NormBase"];

    /// <summary>List the layers of a model that are to compute in bfloat16, and refuse what is on neither list.</summary>
    public static List<nn.Module<Tensor, Tensor>> Layers(nn.Module model)
    {
        List<nn.Module<Tensor, Tensor>> layers = [];
        foreach (var (name, layer) in Named(model, "", []))
        {
            if (Products.Contains(layer.GetType().Name) && layer.GetType().Assembly == typeof(nn.Module).Assembly)
            {
                layers.Add((nn.Module<Tensor, Tensor>)layer);
                Bf16Hooks.Check(layers[^1], name);
            }
            else
            {
                Check(name, layer.GetType());
            }
        }

        return layers;
    }

    /// <summary>List a module and what it contains, each once, in PyTorch's order.</summary>
    private static IEnumerable<(string Name, nn.Module Module)> Named(nn.Module module, string name, HashSet<nn.Module> seen)
        => !seen.Add(module) ? [] : module.named_children()
            .SelectMany(child => Named(child.module, name.Length == 0 ? child.name : $"{name}.{child.name}", seen))
            .Prepend((name.Length == 0 ? "the model" : name, module));

    private static void Check(string name, Type type)
    {
        if (ForwardCalls.Find(type) is { } method)
        {
            throw new ArgumentException($"mixed_precision: expected layers to be run by call, got forward in {method}, which passes their hooks by");
        }

        var own = type;
        while (own.Assembly != typeof(nn.Module).Assembly)
        {
            own = own.BaseType!;
        }

        var family = Family(Plain(own));
        if (Float32.Contains(family) || Bases.Contains(family))
        {
            return;
        }

        var reason = Inside.Contains(family)
            ? "whose products cannot be in bfloat16 in both languages"
            : "which is on no list of what is bfloat16 and what float32";
        var kind = own == type ? Plain(type) : $"{Plain(type)}, derived from {Plain(own)}";
        throw new ArgumentException($"mixed_precision: expected layers of known precision, got {name} of type {kind}, {reason}");
    }

    private static string Plain(Type type) => type.Name.Split('`')[0];

    private static string Family(string name) => name is [.., >= '1' and <= '3', 'd'] ? name[..^2] : name;
}
