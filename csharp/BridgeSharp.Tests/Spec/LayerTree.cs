using System.Text.Json;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>A model of named layers, as the vectors of mixed precision have them.</summary>
internal sealed class LayerTree : nn.Module
{
    private static readonly Dictionary<string, Func<nn.Module>> Kinds = new()
    {
        ["Linear"] = () => nn.Linear(2, 2),
        ["Conv2d"] = () => nn.Conv2d(1, 1, 1L),
        ["ConvTranspose2d"] = () => nn.ConvTranspose2d(1, 1, 1L),
        ["BatchNorm2d"] = () => nn.BatchNorm2d(1),
        ["LayerNorm"] = () => nn.LayerNorm(2),
        ["ReLU"] = () => nn.ReLU(),
        ["Dropout"] = () => nn.Dropout(),
        ["Embedding"] = () => nn.Embedding(2, 2),
        ["LSTM"] = () => nn.LSTM(1, 1),
        ["GRU"] = () => nn.GRU(1, 1),
        ["MultiheadAttention"] = () => nn.MultiheadAttention(2, 1),
        ["CosineSimilarity"] = () => nn.CosineSimilarity(),
    };

    /// <summary>Register the layers of a case.</summary>
    public LayerTree(JsonElement layers)
        : this([.. layers.EnumerateArray().Select(layer => (layer[0].GetString()!, Made(layer[1])))])
    {
    }

    /// <summary>Register layers, in order.</summary>
    public LayerTree(params IReadOnlyList<(string Name, nn.Module Layer)> layers)
        : base(nameof(LayerTree))
    {
        foreach (var (name, layer) in layers)
        {
            register_module(name, layer);
        }
    }

    /// <summary>Make the layer of a case, with its weight and bias.</summary>
    public static nn.Module<Tensor, Tensor> Layer(JsonElement entry)
    {
        var weight = Vectors.Tensor(entry.GetProperty("operands").GetProperty("weight"), "float32");
        var bias = Vectors.Tensor(entry.GetProperty("operands").GetProperty("bias"), "float32");
        var shape = weight.shape;
        nn.Module<Tensor, Tensor> layer = entry.GetProperty("layer").GetString() switch
        {
            "Linear" => nn.Linear(shape[1], shape[0]),
            "Conv1d" => nn.Conv1d(shape[1], shape[0], shape[2]),
            "Conv2d" => nn.Conv2d(shape[1], shape[0], (shape[2], shape[3])),
            _ => nn.Conv3d(shape[1], shape[0], (shape[2], shape[3], shape[4])),
        };
        StateDict.Load(layer, new Dictionary<string, Tensor> { ["weight"] = weight, ["bias"] = bias });
        return layer;
    }

    private static nn.Module Made(JsonElement kind) => kind.ValueKind == JsonValueKind.Array ? new LayerTree(kind) : Kinds[kind.GetString()!]();
}
