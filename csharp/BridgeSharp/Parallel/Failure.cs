using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp;

/// <summary>One replica's failure: which replica, on which device, and what it threw.</summary>
/// <param name="Replica">The index of the replica.</param>
/// <param name="Device">Where it ran.</param>
/// <param name="Error">What it threw.</param>
public sealed record Failure(int Replica, Device Device, Exception Error)
{
    /// <summary>Say where and what, with the stack of the replica.</summary>
    /// <returns>The text.</returns>
    public override string ToString()
        => $"in replica {Replica} on device {Devices.Name(Device)}: {Summary}\n{Error}";

    /// <summary>The type of the error and the first line of its message.</summary>
    public string Summary => $"{Error.GetType().Name}: {Error.Message.Split('\n')[0]}";
}

/// <summary>At least one replica failed; every failure is reported, with its index and device.</summary>
public sealed class ReplicaException : InvalidOperationException
{
    /// <summary>Keep the failures and say how many replicas ran, or that those listed failed as one.</summary>
    /// <param name="failures">The failures, in replica order.</param>
    /// <param name="count">How many replicas ran.</param>
    /// <param name="together">Whether they have one error, as replicas do that are differentiated together.</param>
    public ReplicaException(IReadOnlyList<Failure> failures, int count, bool together = false)
        : base(together ? Together(failures) : Each(failures, count), failures[0].Error)
        => Failures = failures;

    /// <summary>The failures, in replica order.</summary>
    public IReadOnlyList<Failure> Failures { get; }

    /// <summary>Describe failures that each replica had by itself.</summary>
    private static string Each(IReadOnlyList<Failure> failures, int count)
        => string.Join('\n', [$"parallel_apply: {failures.Count} of {count} replicas failed", .. failures.Select(failure => $"{failure}")]);

    /// <summary>Describe the one error of replicas that were differentiated together.</summary>
    private static string Together(IReadOnlyList<Failure> failures)
    {
        var indices = string.Join(", ", failures.Select(failure => failure.Replica));
        var head = $"backward: replicas {indices} failed together, as one backward runs over their losses";
        return $"{head}: {failures[0].Summary}\n{failures[0].Error}";
    }
}
