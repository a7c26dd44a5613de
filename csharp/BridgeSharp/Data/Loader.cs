using System.Collections;
using System.Diagnostics.CodeAnalysis;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Data;

/// <summary>A data set that reads whole batches.</summary>
public interface IDataset
{
    /// <summary>Count the samples.</summary>
    long Count { get; }

    /// <summary>Read samples out.</summary>
    /// <param name="indices">Which samples, int64 <c>(N,)</c>; disposed after the call.</param>
    /// <returns>A batch.</returns>
    object batch(Tensor indices);
}

/// <summary>Reads a data set in batches, in the same order in both languages and in another each epoch.</summary>
/// <remarks>
/// An iteration gives what is left of the epoch; a thread reads ahead. Breaking off loses nothing: the next iteration
/// goes on with the next batch, and so does a loader that takes the state. The tensors of a batch go to the dispose
/// scope that is open where it is taken; those of batches that nobody took are disposed.
/// Spec: R17.1, R17.2, R17.3, R17.4, R17.5, R17.6, R17.7, R17.8.
/// </remarks>
/// <typeparam name="T">The type of a batch, such as <c>(Tensor, Tensor)</c>; for a trainer <c>(object, object)</c>.</typeparam>
[SuppressMessage("Naming", "CA1724", Justification = "The namespace System.Runtime.Loader holds no type that one would take for this.")]
public sealed class Loader<T> : IEnumerable<T>, IStateful
{
    private readonly long count, batchSize;
    private readonly bool shuffle, dispose;
    private readonly int prefetch;
    private readonly Func<Tensor, object> read;
    private long seed;
    private object iteration = new();

    /// <summary>Count the batches; nothing is read yet.</summary>
    /// <param name="dataset">
    /// An <see cref="IDataset"/>; a tensor <c>(N, *)</c>, or a tuple or dictionary of tensors <c>(N, *)</c> and lists of
    /// N samples; or a sequence of samples: a list, an array, or a data set of TorchSharp.
    /// </param>
    /// <param name="batch_size">Samples per batch; the last of an epoch may have fewer.</param>
    /// <param name="shuffle">Whether each epoch has an order of its own, else it is that of the data set.</param>
    /// <param name="seed">Of the orders.</param>
    /// <param name="drop_last">Whether a last batch of fewer samples is left out.</param>
    /// <param name="prefetch">How many batches a thread reads ahead; with 0 the caller reads.</param>
    /// <param name="collate">
    /// <c>"stack"</c> stacks samples part by part, as <c>default_collate</c> of PyTorch does; <c>"list"</c> keeps a list
    /// of samples, which may have any lengths.
    /// </param>
    /// <param name="dispose_batches">
    /// Whether the tensors of a batch are disposed when the next one is taken, as those of TorchSharp's loader are: for
    /// who keeps none and has no dispose scope around each, such as <see cref="Trainer.fit"/>.
    /// </param>
    /// <exception cref="ArgumentException">Not a data set, an option out of range, or a data set without a batch.</exception>
    public Loader(
        object dataset,
        long batch_size,
        bool shuffle = true,
        long seed = 0,
        bool drop_last = false,
        int prefetch = 2,
        string collate = "stack",
        bool dispose_batches = false)
    {
        CheckLeast(nameof(batch_size), batch_size, 1);
        CheckLeast(nameof(seed), seed, 0);
        CheckLeast(nameof(prefetch), prefetch, 0);
        (count, read) = Samples.Source(dataset, collate);
        Count = drop_last ? count / batch_size : (count + batch_size - 1) / batch_size;
        if (Count == 0)
        {
            throw new ArgumentException($"Loader: expected at least {batch_size} samples, one batch, with drop_last, got {count}");
        }

        batchSize = batch_size;
        this.shuffle = shuffle;
        this.prefetch = prefetch;
        this.seed = seed;
        dispose = dispose_batches;
    }

    /// <summary>The epoch of the next batch, from 0.</summary>
    public long epoch { get; private set; }

    /// <summary>The place of the next batch in its epoch, from 0.</summary>
    public long position { get; private set; }

    /// <summary>Count the batches of an epoch.</summary>
    public long Count { get; }

    /// <summary>Give the batches that are left of the epoch.</summary>
    /// <remarks>Spec: R17.1, R17.2, R17.3.</remarks>
    /// <returns>The batches; <c>MoveNext</c> throws <see cref="InvalidOperationException"/> where a later iteration, or a loaded state, has ended this one.</returns>
    public IEnumerator<T> GetEnumerator()
    {
        var mine = iteration = new object();
        using var indices = Indices();
        foreach (var batch in Prefetch.Ahead(number => Read(indices, number), position, Count, prefetch, dispose))
        {
            if (iteration != mine)
            {
                throw new InvalidOperationException("Loader: expected the latest iteration, got one that has been ended");
            }

            position++;
            if (position == Count)
            {
                (epoch, position) = (epoch + 1, 0);
            }

            yield return batch;
        }
    }

    /// <summary>Return where the loader is: the epoch and the position of the next batch, and the seed.</summary>
    /// <remarks>Spec: R17.3.</remarks>
    /// <returns>A fresh dictionary of <c>epoch</c>, <c>position</c> and <c>seed</c>, the same in both languages.</returns>
    public OrderedDictionary<string, long> state_dict() => new() { ["epoch"] = epoch, ["position"] = position, ["seed"] = seed };

    /// <summary>Go on where another loader on the same data, with the same options, was.</summary>
    /// <remarks>Spec: R17.3, R17.5.</remarks>
    /// <param name="state"><c>epoch</c>, <c>position</c> and <c>seed</c>.</param>
    /// <exception cref="ArgumentException">Other keys, or a number out of range.</exception>
    public void load_state_dict(IReadOnlyDictionary<string, long> state)
    {
        if (!state.Keys.ToHashSet().SetEquals(["epoch", "position", "seed"]))
        {
            var got = state.Count > 0 ? string.Join(", ", state.Keys) : "nothing";
            throw new ArgumentException($"Loader: expected a state of epoch, position and seed, got {got}");
        }

        CheckLeast(nameof(epoch), state["epoch"], 0);
        CheckLeast(nameof(seed), state["seed"], 0);
        if (state["position"] < 0 || state["position"] >= Count)
        {
            throw new ArgumentException($"Loader: expected position from 0 to {Count - 1}, got {state["position"]}");
        }

        (epoch, position, seed) = (state["epoch"], state["position"], state["seed"]);
        iteration = new object();
    }

    /// <inheritdoc/>
    object? IStateful.state_dict() => state_dict();

    /// <inheritdoc/>
    void IStateful.load_state_dict(object? state)
        => load_state_dict(Optim.StateFields.Entries(state).ToDictionary(entry => entry.Key, entry => Convert.ToInt64(entry.Value, null)));

    /// <summary>Give the batches that are left of the epoch.</summary>
    IEnumerator IEnumerable.GetEnumerator() => GetEnumerator();

    /// <summary>Refuse a number that is too small.</summary>
    private static void CheckLeast(string name, long value, long least)
    {
        if (value < least)
        {
            throw new ArgumentException($"Loader: expected {name} of at least {least}, got {value}");
        }
    }

    /// <summary>List the indices of an epoch, in its order.</summary>
    private Tensor Indices() => (shuffle ? Order.order(count, seed, epoch) : arange(count)).DetachFromDisposeScope();

    /// <summary>Read the batch of a place in the epoch.</summary>
    private T Read(Tensor indices, long number)
    {
        var start = number * batchSize;
        using var part = indices.narrow(0, start, Math.Min(batchSize, count - start));
        return Typed.As<T>(read(part));
    }
}
