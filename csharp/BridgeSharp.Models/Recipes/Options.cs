using BridgeSharp.Parallel;
using static TorchSharp.torch;

namespace BridgeSharp.Models.Recipes;

/// <summary>The options of a training job; the same names and defaults in both languages.</summary>
/// <remarks>Spec: R14.1.</remarks>
public sealed record Options
{
    private static readonly Dictionary<string, ScalarType> Dtypes = new() { ["float32"] = float32, ["float64"] = float64 };

    private static readonly Dictionary<string, Dictionary<string, double>> Defaults = new()
    {
        ["sgd"] = new() { ["lr"] = 0.05, ["momentum"] = 0.9 },
        ["adam"] = new() { ["lr"] = 0.001 },
    };

    /// <summary>The folder of the data set; null takes the folder of Debian's package.</summary>
    public string? data { get; init; }

    /// <summary>How often the data is gone through.</summary>
    public long epochs { get; init; } = 1;

    /// <summary>Stop after so many steps; null goes on to the end of the last epoch.</summary>
    public long? steps { get; init; }

    /// <summary>The number of replicas.</summary>
    public int replicas { get; init; } = 2;

    /// <summary>Samples per step, over all replicas.</summary>
    public long batch { get; init; } = 128;

    /// <summary><c>"float32"</c> or <c>"float64"</c>.</summary>
    public string dtype { get; init; } = "float64";

    /// <summary><c>"sgd"</c> (with momentum 0.9) or <c>"adam"</c>.</summary>
    public string optimizer { get; init; } = "adam";

    /// <summary>The learning rate; null takes 0.05 for sgd and 0.001 for adam.</summary>
    public double? lr { get; init; }

    /// <summary>Of the initial weights and the order of the samples.</summary>
    public long seed { get; init; }

    /// <summary><c>"cpu"</c>, <c>"cuda"</c> (one GPU per replica) or one GPU such as <c>"cuda:0"</c>.</summary>
    public string device { get; init; } = "cpu";

    /// <summary>torch's intra-op threads.</summary>
    public int threads { get; init; } = 1;

    /// <summary>Whose optimizer formulas: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</summary>
    public string reference { get; init; } = "2.10";

    /// <summary>The options of the optimizer, with its defaults.</summary>
    public IReadOnlyDictionary<string, object> optimizer_options
        => Defaults[optimizer].ToDictionary(option => option.Key, option => (object)(option.Key == "lr" ? lr ?? option.Value : option.Value));

    /// <summary>One device per replica.</summary>
    public IReadOnlyList<string> devices
        => [.. Enumerable.Range(0, replicas).Select(index => device == "cuda" ? $"cuda:{index}" : device)];

    /// <summary>The element type.</summary>
    public ScalarType scalar_type => Dtypes[dtype];

    /// <summary>Refuse what cannot be run.</summary>
    /// <returns>These options.</returns>
    /// <exception cref="ArgumentException">An option out of range.</exception>
    public Options Checked()
    {
        foreach (var (name, value) in new (string, long?)[]
        {
            ("epochs", epochs), ("steps", steps), ("replicas", replicas), ("batch", batch), ("threads", threads),
        })
        {
            if (value < 1)
            {
                throw new ArgumentException($"options: expected {name} of at least 1, got {value}");
            }
        }

        if (!Dtypes.ContainsKey(dtype))
        {
            throw new ArgumentException($"options: expected dtype {string.Join(" or ", Dtypes.Keys)}, got {dtype}");
        }

        if (!Defaults.ContainsKey(optimizer))
        {
            throw new ArgumentException($"options: expected optimizer {string.Join(" or ", Defaults.Keys)}, got {optimizer}");
        }

        if (lr is { } rate && !(rate > 0 && double.IsFinite(rate)))
        {
            throw new ArgumentException($"options: expected lr above 0, got {Text.Number(rate)}");
        }

        return seed >= 0
            ? this
            : throw new ArgumentException($"options: expected seed of at least 0, got {seed}");
    }
}
