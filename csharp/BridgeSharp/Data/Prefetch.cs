using System.Threading.Channels;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Data;

/// <summary>Reading ahead.</summary>
internal static class Prefetch
{
    /// <summary>Yield what <paramref name="read"/> makes of each number; a thread reads at most <paramref name="limit"/> of them ahead.</summary>
    /// <remarks>
    /// With 0 the caller's thread reads. The caller's grad mode holds. A failure is thrown at its number, as it was. The
    /// thread ends with the iteration: at its end, failed, disposed or collected. The tensors that were made go to the
    /// dispose scope of who takes them; or with <paramref name="dispose"/> they end when the next are taken.
    /// Spec: R17.6, R17.7, R17.8.
    /// </remarks>
    public static IEnumerable<T> Ahead<T>(Func<long, T> read, long first, long end, int limit, bool dispose)
    {
        foreach (var item in limit == 0 ? Here(read, first, end) : There(read, first, end, limit))
        {
            if (!dispose)
            {
                item.HandOver();
            }

            try
            {
                yield return item.Value;
            }
            finally
            {
                if (dispose)
                {
                    item.Drop();
                }
            }
        }
    }

    /// <summary>Read on the caller's thread.</summary>
    private static IEnumerable<Item<T>> Here<T>(Func<long, T> read, long first, long end)
    {
        for (var number = first; number < end; number++)
        {
            yield return Read(read, number);
        }
    }

    /// <summary>Read on a thread of its own.</summary>
    private static IEnumerable<Item<T>> There<T>(Func<long, T> read, long first, long end, int limit)
    {
        using var reader = new Reader<T>(read, first, end, limit);
        while (reader.Next(out var item))
        {
            yield return item;
        }
    }

    /// <summary>The consumer's end of the channel; the thread does not hold it, so that it can be collected.</summary>
    private sealed class Reader<T> : IDisposable
    {
        private readonly Channel<Item<T>> channel;
        private readonly Thread thread;

        public Reader(Func<long, T> read, long first, long end, int limit)
        {
            // Whoever waits is woken by the other side's thread, with no detour by the thread pool.
            var made = Channel.CreateBounded<Item<T>>(new BoundedChannelOptions(limit) { AllowSynchronousContinuations = true });
            var grad = is_grad_enabled();
            channel = made;
            thread = new Thread(() => Work(made, read, first, end, grad)) { IsBackground = true, Name = "loader" };
            thread.Start();
        }

        ~Reader() => channel.Writer.TryComplete();

        public bool Next(out Item<T> item)
        {
            item = default;
            return channel.Reader.WaitToReadAsync().AsTask().GetAwaiter().GetResult() && channel.Reader.TryRead(out item);
        }

        public void Dispose()
        {
            GC.SuppressFinalize(this);
            channel.Writer.TryComplete();
            thread.Join();
            while (channel.Reader.TryRead(out var item))
            {
                item.Drop();
            }
        }
    }

    /// <summary>What was read, and the tensors that were made for it.</summary>
    private readonly record struct Item<T>(T Value, IReadOnlyList<IDisposable> Made)
    {
        /// <summary>Give the tensors to the dispose scope of this thread, where it has one.</summary>
        public void HandOver()
        {
            using var scope = NewDisposeScope();
            scope.MoveToOuter(scope.Attach(Made));
        }

        /// <summary>Dispose the tensors.</summary>
        public void Drop()
        {
            foreach (var tensor in Made)
            {
                tensor.Dispose();
            }
        }
    }

    /// <summary>Read on as long as there is room, and somebody who takes.</summary>
    private static void Work<T>(Channel<Item<T>> channel, Func<long, T> read, long first, long end, bool grad)
    {
        try
        {
            using var mode = set_grad_enabled(grad);
            for (var number = first; number < end && channel.Writer.WaitToWriteAsync().AsTask().GetAwaiter().GetResult(); number++)
            {
                var item = Read(read, number);
                if (!channel.Writer.TryWrite(item))
                {
                    item.Drop();
                }
            }

            channel.Writer.TryComplete();
        }
#pragma warning disable CA1031 // Thrown at its number, on the thread of who takes it.
        catch (Exception error)
#pragma warning restore CA1031
        {
            channel.Writer.TryComplete(error);
        }
    }

    /// <summary>Read in a dispose scope of its own, and take out of it what was made.</summary>
    private static Item<T> Read<T>(Func<long, T> read, long number)
    {
        using var scope = NewDisposeScope();
        var value = read(number);
        var made = scope.DisposablesView;
        scope.Detach(made);
        return new Item<T>(value, made);
    }
}
