using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Models.Examples;

/// <summary>What an example can be told; the same names and defaults in both languages.</summary>
/// <remarks>Spec: R23.1.</remarks>
public sealed record Setting
{
    /// <summary>How many steps it trains.</summary>
    public int steps { get; init; } = 20;

    /// <summary>How many replicas, or parts.</summary>
    public int replicas { get; init; } = 2;

    /// <summary>Of the weights and the data.</summary>
    public long seed { get; init; }

    /// <summary><c>"float32"</c> or <c>"float64"</c>.</summary>
    public string dtype { get; init; } = "float32";

    /// <summary>Whose optimizer formulas: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</summary>
    public string reference { get; init; } = "2.10";

    /// <summary>The element type.</summary>
    public ScalarType scalar_type => dtype == "float64" ? float64 : float32;

    /// <summary>Refuse what cannot be run.</summary>
    /// <returns>This setting.</returns>
    /// <exception cref="ArgumentException">A number out of range, or another dtype.</exception>
    public Setting Checked()
    {
        foreach (var (name, value) in new[] { (nameof(steps), steps), (nameof(replicas), replicas) })
        {
            if (value < 1)
            {
                throw new ArgumentException($"example: expected {name} of at least 1, got {value}");
            }
        }

        if (seed < 0)
        {
            throw new ArgumentException($"example: expected seed of at least 0, got {seed}");
        }

        return dtype is "float32" or "float64"
            ? this
            : throw new ArgumentException($"example: expected dtype float32 or float64, got {dtype}");
    }
}

/// <summary>What an example leaves.</summary>
/// <param name="losses">One per step.</param>
/// <param name="numbers">What it ends with, by name: accuracies, differences, ratios.</param>
/// <param name="state">The parameters at the end, by name; the caller disposes them.</param>
public sealed record Result(
    IReadOnlyList<double> losses, IReadOnlyDictionary<string, double> numbers, OrderedDictionary<string, Tensor> state)
{
    /// <summary>Make a result with a copy of a state.</summary>
    /// <param name="losses">One per step.</param>
    /// <param name="numbers">What it ends with, by name.</param>
    /// <param name="state">The parameters at the end, by name.</param>
    /// <returns>The result.</returns>
    public static Result Of(
        IReadOnlyList<double> losses, IReadOnlyDictionary<string, double> numbers, OrderedDictionary<string, Tensor> state)
        => new(losses, numbers, new OrderedDictionary<string, Tensor>(state.Select(
            entry => KeyValuePair.Create(entry.Key, entry.Value.detach().clone().DetachFromDisposeScope()))));

    /// <summary>Measure how far the parameters of two models are apart at most.</summary>
    internal static double Difference(nn.Module one, nn.Module other)
    {
        using var scope = NewDisposeScope();
        return one.parameters().Zip(other.parameters(), (a, b) => (a - b).abs().max().to(float64).item<double>()).Max();
    }
}

/// <summary>Whole systems on the verbs, twins of those in the Python package: one file each.</summary>
public static class Catalog
{
    private static readonly OrderedDictionary<string, Func<Setting, Action<string>, Result>> Known = new()
    {
        ["manual_loop"] = ManualLoop.Run,
        ["from_scratch"] = FromScratch.Run,
        ["data_parallel"] = DataParallelExample.Run,
        ["variable_length"] = VariableLength.Run,
    };

    /// <summary>The names of the examples.</summary>
    public static IReadOnlyList<string> names => Known.Keys;

    /// <summary>Find an example by its name.</summary>
    /// <remarks>Spec: R23.1.</remarks>
    /// <param name="name">One of <see cref="names"/>.</param>
    /// <returns>The function that runs it.</returns>
    /// <exception cref="ArgumentException">Another name.</exception>
    public static Func<Setting, Action<string>, Result> find(string name)
        => Known.TryGetValue(name, out var example)
            ? example
            : throw new ArgumentException($"example: expected one of {string.Join(", ", Known.Keys)}, got {name}");
}
