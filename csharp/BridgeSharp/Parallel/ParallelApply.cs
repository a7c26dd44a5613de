using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp;

public static partial class bridge
{
    /// <summary>Run each replica on its shard and return the results in replica order.</summary>
    /// <remarks>
    /// A shard that is a tuple holds positional arguments; any other shard is the one argument. Fewer shards
    /// than replicas leave the last replicas alone. All replicas run to their end; then every failure is
    /// reported at once. Spec: R3.1, R3.2, R3.3, R3.4. Source: torch/nn/parallel/parallel_apply.py
    /// </remarks>
    /// <param name="replicas">The modules.</param>
    /// <param name="shards">One per replica that runs.</param>
    /// <param name="devices">Where each replica runs; by default where its module is.</param>
    /// <param name="workers">
    /// How many replicas run at once, each on a thread of its own; 1 runs them in turn. By default as many as
    /// torch's intra-op threads (on GPUs: all).
    /// </param>
    /// <returns>The results, in replica order.</returns>
    /// <exception cref="ArgumentException">More shards than replicas, or no shard.</exception>
    /// <exception cref="ReplicaException">At least one replica failed.</exception>
    public static IReadOnlyList<object> parallel_apply(
        IReadOnlyList<nn.Module> replicas, IReadOnlyList<object> shards, IReadOnlyList<Device>? devices = null, int? workers = null)
    {
        var places = devices ?? [.. replicas.Select(Devices.Of)];
        return parallel_apply([.. replicas.Select(Callable)], shards, places, workers);

        static Func<object, object> Callable(nn.Module replica) => shard => Invoke.Call(replica, shard);
    }

    /// <summary>Run each replica on its shard and return the results in replica order.</summary>
    /// <remarks>Spec: R3.1, R3.2, R3.3, R3.4.</remarks>
    /// <param name="replicas">The functions.</param>
    /// <param name="shards">One per replica that runs.</param>
    /// <param name="devices">Where each replica runs; by default on the CPU.</param>
    /// <param name="workers">How many replicas run at once.</param>
    /// <returns>The results, in replica order.</returns>
    /// <exception cref="ArgumentException">More shards than replicas, or no shard.</exception>
    /// <exception cref="ReplicaException">At least one replica failed.</exception>
    public static IReadOnlyList<TResult> parallel_apply<T, TResult>(
        IReadOnlyList<Func<T, TResult>> replicas, IReadOnlyList<T> shards, IReadOnlyList<Device>? devices = null, int? workers = null)
    {
        if (shards.Count == 0 || shards.Count > replicas.Count)
        {
            throw new ArgumentException($"parallel_apply: expected 1 to {replicas.Count} shards, got {shards.Count}");
        }

        var places = devices ?? [.. replicas.Select(_ => CPU)];
        var results = new TResult[shards.Count];
        var errors = new Exception?[shards.Count];
        var grad = is_grad_enabled();
        var threads = Math.Min(workers ?? DefaultWorkers(places), shards.Count);
        if (threads == 1)
        {
            for (var i = 0; i < shards.Count; i++)
            {
                Run(i);
            }
        }
        else
        {
            System.Threading.Tasks.Parallel.For(0, shards.Count, new ParallelOptions { MaxDegreeOfParallelism = threads }, Run);
        }

        var failures = errors.Select((error, i) => error is null ? null : new Failure(i, places[i], error)).OfType<Failure>().ToList();
        if (failures.Count > 0)
        {
            throw new ReplicaException(failures, shards.Count);
        }

        using var here = empty(0);
        foreach (var output in results.SelectMany(result => Tree.Tensors(result)))
        {
            output.MoveToOtherDisposeScope(here);
        }

        return results;

        // Grad mode and dispose scopes belong to a thread: the replica gets the caller's mode and a scope of its own.
        void Run(int index)
        {
            try
            {
                using var mode = set_grad_enabled(grad);
                using var own = NewDisposeScope();
                results[index] = replicas[index](shards[index]);
                foreach (var output in Tree.Tensors(results[index]))
                {
                    output.DetachFromDisposeScope();
                }
            }
            catch (Exception error) when (error is not OutOfMemoryException)
            {
                errors[index] = error;
            }
        }
    }

    /// <summary>Take a thread per GPU, and on the CPU no more threads than torch may use.</summary>
    private static int DefaultWorkers(IReadOnlyList<Device> devices)
        => devices[0].type == DeviceType.CPU ? get_num_threads() : devices.Count;
}
