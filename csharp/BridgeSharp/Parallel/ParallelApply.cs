using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp;

public static partial class bridge
{
    /// <summary>Run each replica on its shard and return the results in replica order.</summary>
    /// <remarks>
    /// A shard that is a tuple holds positional arguments, a dictionary keyword arguments where a key names one of several
    /// parameters; any other shard is the one argument. Fewer shards than replicas leave the last replicas alone. All
    /// replicas run to their end; then every failure is reported at once.
    /// Modules that draw random numbers run in turn; modules that synchronize run all at once.
    /// Spec: R3.1, R3.2, R3.3, R3.4, R3.5. Source: torch/nn/parallel/parallel_apply.py
    /// </remarks>
    /// <param name="replicas">The modules.</param>
    /// <param name="shards">One per replica that runs.</param>
    /// <param name="kwargs">Keyword arguments, one dictionary per shard.</param>
    /// <param name="devices">Where each replica runs; by default where its module is.</param>
    /// <param name="workers">
    /// How many replicas run at once, each on a thread of its own; 1 runs them in turn. By default as many as
    /// torch's intra-op threads (on GPUs: all).
    /// </param>
    /// <param name="states">
    /// A random state per replica: they run in turn, each on its own. Without, modules that draw share the caller's
    /// stream, one after the other.
    /// </param>
    /// <returns>The results, in replica order.</returns>
    /// <exception cref="ArgumentException">
    /// More shards than replicas, no shard, another count of <paramref name="kwargs"/> or devices, or no worker.
    /// </exception>
    /// <exception cref="ReplicaException">At least one replica failed.</exception>
    public static IReadOnlyList<object> parallel_apply(
        IReadOnlyList<nn.Module> replicas,
        IReadOnlyList<object> shards,
        IReadOnlyList<IReadOnlyDictionary<string, object?>>? kwargs = null,
        IReadOnlyList<Device>? devices = null,
        int? workers = null,
        RandomStates? states = null)
    {
        if (kwargs is not null && kwargs.Count != shards.Count)
        {
            throw new ArgumentException($"parallel_apply: expected {shards.Count} keyword mappings, got {kwargs.Count}");
        }

        var places = devices ?? [.. replicas.Select(Devices.Of)];
        var in_turn = states is not null || replicas.Any(RandomStates.draws);
        var together = replicas.Any(SyncBatchNorm.synchronizes);
        return Apply([.. replicas.Select(Callable)], shards, places, workers, states, in_turn, together);

        Func<object, object> Callable(nn.Module replica, int index) => shard => Invoke.Call(replica, shard, kwargs?[index]);
    }

    /// <summary>Run each replica on its shard and return the results in replica order.</summary>
    /// <remarks>Spec: R3.1, R3.2, R3.3, R3.4.</remarks>
    /// <param name="replicas">The functions.</param>
    /// <param name="shards">One per replica that runs.</param>
    /// <param name="devices">Where each replica runs; by default on the CPU.</param>
    /// <param name="workers">How many replicas run at once.</param>
    /// <param name="states">A random state per replica: they run in turn, each on its own.</param>
    /// <returns>The results, in replica order.</returns>
    /// <exception cref="ArgumentException">More shards than replicas, no shard, another count of devices, or no worker.</exception>
    /// <exception cref="ReplicaException">At least one replica failed.</exception>
    public static IReadOnlyList<TResult> parallel_apply<T, TResult>(
        IReadOnlyList<Func<T, TResult>> replicas,
        IReadOnlyList<T> shards,
        IReadOnlyList<Device>? devices = null,
        int? workers = null,
        RandomStates? states = null)
        => Apply(replicas, shards, devices ?? [.. replicas.Select(_ => CPU)], workers, states, states is not null, together: false);

    /// <summary>Run the replicas in the way that their modules ask for.</summary>
    internal static IReadOnlyList<TResult> Apply<T, TResult>(
        IReadOnlyList<Func<T, TResult>> replicas,
        IReadOnlyList<T> shards,
        IReadOnlyList<Device> places,
        int? workers,
        RandomStates? states,
        bool in_turn,
        bool together)
    {
        if (shards.Count == 0 || shards.Count > replicas.Count)
        {
            throw new ArgumentException($"parallel_apply: expected 1 to {replicas.Count} shards, got {shards.Count}");
        }

        if (places.Count != replicas.Count)
        {
            throw new ArgumentException(
                $"parallel_apply: expected {replicas.Count} devices, one per replica, got {places.Count}");
        }

        if (workers < 1)
        {
            throw new ArgumentException($"parallel_apply: expected at least 1 worker, got {workers}");
        }

        var results = new TResult[shards.Count];
        var errors = new Exception?[shards.Count];
        var modes = new ThreadModes();
        var threads = Math.Min(workers ?? DefaultWorkers(places), shards.Count);
        if (together && shards.Count > 1)
        {
            new Group(shards.Count, states, in_turn).Run([.. shards.Select((_, index) => new Func<bool>(() => Run(index)))]);
        }
        else if (threads == 1 || in_turn)
        {
            for (var index = 0; index < shards.Count; index++)
            {
                states?.enter(index);
                Run(index);
                states?.leave(index);
            }
        }
        else
        {
            System.Threading.Tasks.Parallel.For(
                0, shards.Count, new ParallelOptions { MaxDegreeOfParallelism = threads }, index => Run(index));
        }

        using var here = empty(0);
        foreach (var output in results.SelectMany(result => Tree.Tensors(result)))
        {
            output.MoveToOtherDisposeScope(here);
        }

        var failures = errors.Select((error, i) => error is null ? null : new Failure(i, places[i], error)).OfType<Failure>().ToList();
        return failures.Count == 0 ? results : throw new ReplicaException(failures, shards.Count);

        // Dispose scopes belong to a thread: the replica gets one of its own.
        bool Run(int index)
        {
            try
            {
                using var mode = modes.Entered();
                using var own = NewDisposeScope();
                results[index] = replicas[index](shards[index]);
                foreach (var output in Tree.Tensors(results[index]))
                {
                    output.DetachFromDisposeScope();
                }

                return true;
            }
#pragma warning disable CA1031 // Reported with its replica; on a thread of its own it would end the process.
            catch (Exception error)
#pragma warning restore CA1031
            {
                errors[index] = error;
                return false;
            }
        }
    }

    /// <summary>Take a thread per GPU, and on the CPU no more threads than torch may use.</summary>
    private static int DefaultWorkers(IReadOnlyList<Device> devices)
        => devices[0].type == DeviceType.CPU ? get_num_threads() : devices.Count;
}
