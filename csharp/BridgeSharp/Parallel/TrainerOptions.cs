using BridgeSharp.Parallel;
using static TorchSharp.torch;

namespace BridgeSharp;

/// <summary>What a trainer can be told besides its model, optimizer, loss and devices.</summary>
/// <remarks>Spec: R8.7.</remarks>
public sealed record TrainerOptions
{
    /// <summary>What the loss is over its samples: <c>"mean"</c>, <c>"sum"</c>, or <c>"count"</c>, a sum to be divided by what it counts: tokens, class weights, unmasked elements.</summary>
    public string reduction { get; init; } = "mean";

    /// <summary><c>"master"</c> steps replica 0's optimizer and resyncs; <c>"all"</c> steps one optimizer per replica on the same gradients.</summary>
    public string mode { get; init; } = "master";

    /// <summary>Which buffers the replicas have after a step: <c>"first"</c>, <c>"mean"</c> or <c>"each"</c>.</summary>
    public string buffers { get; init; } = "first";

    /// <summary>How many batches make one update.</summary>
    public int accumulate { get; init; } = 1;

    /// <summary>The largest norm of all gradients, after the reduction.</summary>
    public double? clip_norm { get; init; }

    /// <summary>The largest absolute value of a gradient, after the reduction.</summary>
    public double? clip_value { get; init; }

    /// <summary>Makes the scheduler of an optimizer; it is stepped once an update.</summary>
    public Func<optim.Optimizer, optim.lr_scheduler.LRScheduler>? scheduler { get; init; }

    /// <summary>Scales the learning rate for several replicas; without, it stays as it is.</summary>
    public LinearScaling? scaling { get; init; }

    /// <summary>Makes a fresh model, for one that cannot be copied, as in <see cref="bridge.replicate"/>.</summary>
    public Func<nn.Module>? factory { get; init; }

    /// <summary>Refuse an option out of range.</summary>
    internal TrainerOptions Checked()
    {
        Choice("reduction", reduction, "mean", "sum", "count");
        Choice("mode", mode, "master", "all");
        Choice("buffers", buffers, "first", "mean", "each");
        if (accumulate < 1)
        {
            throw new ArgumentException($"Trainer: expected accumulate of at least 1, got {accumulate}");
        }

        Limit(nameof(clip_norm), clip_norm);
        Limit(nameof(clip_value), clip_value);
        return this;
    }

    private static void Choice(string name, string value, params string[] choices)
    {
        if (!choices.Contains(value))
        {
            throw new ArgumentException($"Trainer: expected {name} {string.Join(", ", choices)}, got {value}");
        }
    }

    private static void Limit(string name, double? limit)
    {
        if (limit is { } value && !(value > 0))
        {
            throw new ArgumentException($"Trainer: expected {name} above 0, got {Text.Number(value)}");
        }
    }
}
