using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp;

public static partial class bridge
{
    /// <summary>Let every replica take replica 0's state through <c>load_state_dict</c>.</summary>
    /// <remarks>
    /// Parameters are always replica 0's. Buffers follow a policy: <c>first</c> takes replica 0's, <c>mean</c> the mean
    /// over the replicas where they are floating point (counters are replica 0's), <c>each</c> leaves every replica its
    /// own. Buffers that are not persistent are each replica's own. Spec: R6.1, R6.2, R6.4, R6.5.
    /// </remarks>
    /// <param name="replicas">Modules with the same state.</param>
    /// <param name="buffers"><c>"first"</c>, <c>"mean"</c> or <c>"each"</c>.</param>
    /// <param name="optimizers">One per replica, where each has its own; they take the first one's state.</param>
    /// <exception cref="ArgumentException">No replicas, another policy, or another number of optimizers.</exception>
    /// <exception cref="InvalidOperationException">Keys that are missing, unexpected, or of another shape or dtype, listed.</exception>
    public static void resync(
        IReadOnlyList<nn.Module> replicas, string buffers = "first", IReadOnlyList<torch.optim.Optimizer>? optimizers = null)
    {
        if (replicas.Count == 0)
        {
            throw new ArgumentException("resync: expected at least 1 replica, got 0");
        }

        if (buffers is not ("first" or "mean" or "each"))
        {
            throw new ArgumentException($"resync: expected buffers first, mean or each, got {buffers}");
        }

        if (optimizers is { Count: > 0 } && optimizers.Count != replicas.Count)
        {
            throw new ArgumentException(
                $"resync: expected {replicas.Count} optimizers, one per replica, got {optimizers.Count}");
        }

        if (replicas.Count == 1)
        {
            return;
        }

        if (buffers == "mean")
        {
            AverageBuffers(replicas);
        }

        var state = StateDict.Of(replicas[0]);
        foreach (var replica in replicas.Skip(1))
        {
            var own = buffers == "each" ? replica.named_buffers().ToDictionary() : [];
            StateDict.Load(replica, state.ToDictionary(entry => entry.Key, entry => own.GetValueOrDefault(entry.Key, entry.Value)));
        }

        foreach (var optimizer in optimizers?.Skip(1) ?? [])
        {
            FieldSnapshot.Copy(optimizers![0], optimizer);
        }
    }

    /// <summary>Put the mean of the floating-point buffers, added in replica order, on replica 0.</summary>
    private static void AverageBuffers(IReadOnlyList<nn.Module> replicas)
    {
        using var mode = no_grad();
        var states = replicas.Select(StateDict.Of).ToList();
        foreach (var (name, first) in replicas[0].named_buffers())
        {
            if (!states[0].ContainsKey(name) || !first.is_floating_point())
            {
                continue;
            }

            using var scope = NewDisposeScope();
            var total = widened(first) / states.Count;
            foreach (var state in states.Skip(1))
            {
                total.add_(widened(state[name].to(first.device)), alpha: 1.0 / states.Count);
            }

            first.copy_(total);
        }
    }
}
