using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>A replica waited for another that failed, or that ended without coming to the exchange.</summary>
/// <param name="message">Who did not come.</param>
public sealed class BrokenGroupException(string message) : InvalidOperationException(message);

/// <summary>Runs one function per replica, each on a thread of its own, and lets them exchange values.</summary>
/// <remarks>
/// In turn, one replica runs at a time, the first that can go on: one that waits in an exchange hands the turn on.
/// Otherwise all run at once. Spec: R19.1, R19.2, R19.3.
/// </remarks>
/// <param name="count">The number of replicas.</param>
/// <param name="states">The random states; each replica runs on its own.</param>
/// <param name="in_turn">Whether the replicas run in turn, as they must where they draw.</param>
public sealed class Group(int count, RandomStates? states = null, bool in_turn = false)
{
    [ThreadStatic]
    private static (Group Group, int Index)? own;

    private readonly object changed = new();
    private readonly Status[] status = new Status[count];
    private readonly List<Tensor> kept = [];
    private object?[] values = new object?[count];
    private object?[] results = [];
    private long round;
    private string? broken;

    /// <summary>What a replica is at.</summary>
    private enum Status
    {
        Ready,
        Running,
        Waiting,
        Ended,
    }

    /// <summary>Give a value to the group of this thread and return those of all replicas, in order.</summary>
    /// <remarks>Outside a group there is one replica: the caller. Spec: R19.1.</remarks>
    /// <param name="value">A tensor, or a tree; its tensors live until all replicas have ended.</param>
    /// <returns>The values, in replica order.</returns>
    /// <exception cref="BrokenGroupException">Another replica failed, or ended without coming to the exchange.</exception>
    public static IReadOnlyList<T> exchange<T>(T value)
        => own is { } place ? [.. place.Group.Exchange(place.Index, value).Cast<T>()] : [value];

    /// <summary>Run one function per replica, which keep their own results and failures.</summary>
    /// <param name="functions">One per replica; each says whether it succeeded.</param>
    internal void Run(IReadOnlyList<Func<bool>> functions)
    {
        var threads = functions.Select((function, index) => new Thread(() => Work(index, function)) { IsBackground = true, Name = $"replica-{index}" }).ToList();
        threads.ForEach(thread => thread.Start());
        threads.ForEach(thread => thread.Join());
        kept.ForEach(tensor => tensor.Dispose());
    }

    private object?[] Exchange(int index, object? value)
    {
        lock (changed)
        {
            var number = round;
            foreach (var tensor in Tree.Tensors(value))
            {
                kept.Add(tensor.DetachFromDisposeScope());
            }

            values[index] = value;
            Leave(index, Status.Waiting);
            Wait(() => round != number || broken is not null);
            var (all, arrived) = (results, round != number);
            Enter(index);
            if (!arrived)
            {
                throw new BrokenGroupException($"exchange: expected every replica, but {broken}");
            }

            return all;
        }
    }

    /// <summary>Run one replica to its end.</summary>
    private void Work(int index, Func<bool> function)
    {
        own = (this, index);
        lock (changed)
        {
            Enter(index);
        }

        var succeeded = function();
        lock (changed)
        {
            if (!succeeded)
            {
                broken ??= $"replica {index} failed";
            }

            Leave(index, Status.Ended);
        }
    }

    /// <summary>Wait for the turn, where there are turns, and take up the random state.</summary>
    private void Enter(int index)
    {
        status[index] = Status.Ready;
        if (in_turn)
        {
            Wait(() => Next() == index);
        }

        states?.enter(index);
        status[index] = Status.Running;
    }

    /// <summary>Put the random state away, and let the others go on.</summary>
    private void Leave(int index, Status next)
    {
        if (status[index] == Status.Running)
        {
            states?.leave(index);
        }

        status[index] = next;
        if (Array.TrueForAll(status, at => at == Status.Waiting))
        {
            results = values;
            values = new object?[count];
            Array.Fill(status, Status.Ready);
            round++;
        }
        else if (status.Contains(Status.Waiting) && status.Contains(Status.Ended))
        {
            broken ??= $"replica {Array.IndexOf(status, Status.Ended)} ended without coming to it";
        }

        Monitor.PulseAll(changed);
    }

    /// <summary>Name the replica whose turn it is: nobody's while one is running.</summary>
    private int Next() => status.Contains(Status.Running) ? -1 : Array.IndexOf(status, Status.Ready);

    private void Wait(Func<bool> condition)
    {
        while (!condition())
        {
            Monitor.Wait(changed);
        }
    }
}
