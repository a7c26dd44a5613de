using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>One replica's part of a step: from its shard to its loss, and from the losses to gradients.</summary>
internal static class Forward
{
    /// <summary>Run a replica on its shard and return its loss, with what it counts.</summary>
    /// <remarks>Spec: R8.5, R8.6.</remarks>
    /// <param name="module">The replica.</param>
    /// <param name="loss"><c>(outputs, targets)</c> to a scalar, or with <c>count</c> to a sum and a count.</param>
    /// <param name="reduction"><c>"mean"</c>, <c>"sum"</c> or <c>"count"</c>.</param>
    /// <param name="inputs">The inputs of the shard.</param>
    /// <param name="targets">Its targets.</param>
    /// <returns>The loss, a scalar, and its number of samples or its count.</returns>
    public static (Tensor Loss, double Count) Run(
        nn.Module module, Func<object, object, (Tensor, double)> loss, string reduction, object inputs, object targets)
    {
        var (value, count) = loss(Invoke.Call(module, inputs), targets);
        if (value is null || value.numel() != 1)
        {
            var got = value is null ? "NoneType" : $"shape {Text.Shape(value.shape)}";
            throw new ArgumentException($"Trainer: expected the loss to return a scalar tensor, got {got}");
        }

        if (reduction != "count")
        {
            return (value, bridge.batch_size((inputs, targets)));
        }

        return count >= 0 && double.IsFinite(count)
            ? (value, count)
            : throw new ArgumentException($"Trainer: expected a count that is finite and not negative, got {Text.Number(count)}");
    }

    /// <summary>Differentiate the losses of all shards, and return the loss of the whole batch.</summary>
    /// <remarks>
    /// The gradients that it leaves on the replicas add up to those of the whole batch. A shard that counts nothing
    /// contributes nothing. Spec: R8.5, R8.6, R22.1.
    /// </remarks>
    /// <param name="parts">The loss and count of each shard.</param>
    /// <param name="reduction">How the losses were reduced.</param>
    /// <param name="together">Differentiate their sum, as replicas with connected graphs need.</param>
    /// <param name="states">The random states of the replicas, where they draw.</param>
    /// <returns>The mean loss over the samples or counts, or with <c>sum</c> the sum; and their number.</returns>
    public static (double Value, double Count) Backward(
        IReadOnlyList<(Tensor Loss, double Count)> parts, string reduction, bool together, RandomStates? states = null)
    {
        var total = parts.Sum(part => part.Count);
        var losses = parts.Select(part => part.Count != 0 ? Scaled(part.Loss, part.Count, total, reduction) : null).ToList();
        var counts = parts.Any(part => part.Count != 0);
        if (together && counts)
        {
            DifferentiateTogether(losses);
        }
        else if (counts)
        {
            var runs = losses.ConvertAll(_ => (Func<Tensor?, object?>)Differentiate);
            bridge.parallel_apply(runs, losses, [.. parts.Select(part => part.Loss.device)], states: states);
        }

        var values = parts.Where(part => part.Count != 0).Select(part => (part.Loss.to(float64).item<double>(), part.Count)).ToList();
        return (Whole(values, total, reduction), total);
    }

    /// <summary>Differentiate the loss of a shard, unless it counts nothing.</summary>
    private static object? Differentiate(Tensor? loss)
    {
        loss?.backward();
        return null;
    }

    /// <summary>Differentiate the sum of all losses; a failure is that of all replicas that count.</summary>
    private static void DifferentiateTogether(List<Tensor?> losses)
    {
        var counted = losses.Index().Where(entry => entry.Item is not null).Select(entry => (entry.Index, Loss: entry.Item!)).ToList();
        try
        {
            autograd.backward(counted.ConvertAll(entry => entry.Loss));
        }
        catch (Exception error)
        {
            throw new ReplicaException(counted.ConvertAll(entry => new Failure(entry.Index, entry.Loss.device, error)), losses.Count, together: true);
        }
    }

    /// <summary>Put the losses of the shards together to that of the whole batch.</summary>
    private static double Whole(List<(double Value, double Count)> values, double total, string reduction)
    {
        if (reduction == "mean")
        {
            return values.Sum(part => part.Value * (part.Count / total));
        }

        var whole = values.Sum(part => part.Value);
        return reduction == "count" && total != 0 ? whole / total : whole;
    }

    /// <summary>Scale the loss of a shard to its part of the whole batch's.</summary>
    private static Tensor Scaled(Tensor loss, double count, double total, string reduction) => reduction switch
    {
        "count" => loss / total,
        "mean" when count != total => loss * (count / total),
        _ => loss,
    };
}
