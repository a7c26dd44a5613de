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
    /// <summary>Keep the failures and say how many replicas ran.</summary>
    /// <param name="failures">The failures, in replica order.</param>
    /// <param name="count">How many replicas ran.</param>
    public ReplicaException(IReadOnlyList<Failure> failures, int count)
        : base(Describe(failures, count), failures[0].Error)
        => Failures = failures;

    /// <summary>The failures, in replica order.</summary>
    public IReadOnlyList<Failure> Failures { get; }

    private static string Describe(IReadOnlyList<Failure> failures, int count)
        => string.Join('\n', [$"parallel_apply: {failures.Count} of {count} replicas failed", .. failures.Select(failure => $"{failure}")]);
}
