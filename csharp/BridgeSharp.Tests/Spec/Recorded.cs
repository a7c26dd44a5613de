using System.Collections.Concurrent;
using BridgeSharp.Data;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>A data set that notes who reads when; each batch is its indices.</summary>
internal sealed class Recorded(long count, Action<long>? read = null) : IDataset, IDisposable
{
    private readonly ConcurrentDictionary<long, ManualResetEventSlim> done = [];
    private Thread? reader;
    private long places;

    public long Count => count;

    public ConcurrentBag<int> Threads { get; } = [];

    public object batch(Tensor indices)
    {
        reader = Thread.CurrentThread;
        Threads.Add(Environment.CurrentManagedThreadId);
        read?.Invoke(indices[0].item<long>());
        Event(Interlocked.Increment(ref places)).Set();
        return indices.clone();
    }

    /// <summary>Wait until so many batches have been read.</summary>
    public bool WaitFor(long number) => Event(number).Wait(TimeSpan.FromSeconds(60));

    /// <summary>Tell whether the reader has ended, or is the caller.</summary>
    public bool Ended() => reader == Thread.CurrentThread || reader is { IsAlive: false };

    public void Dispose() => done.Values.ToList().ForEach(one => one.Dispose());

    private ManualResetEventSlim Event(long number) => done.GetOrAdd(number, _ => new ManualResetEventSlim());
}
