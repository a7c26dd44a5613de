using BridgeSharp.Data;
using TorchSharp;
using Xunit;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>The loader's thread: how far it reads ahead, what it hands over, and how it ends.</summary>
[Collection(nameof(Serial))]
public sealed class PrefetchTests
{
    /// <summary>One thread reads, and as many batches ahead as it may, but not more; without, the caller reads. Spec: R17.6.</summary>
    [Theory]
    [InlineData(0)]
    [InlineData(1)]
    [InlineData(3)]
    public void Reads_as_far_ahead_as_it_may(int prefetch)
    {
        using var scope = NewDisposeScope();
        var (taken, most) = (0L, 0L);
        using var data = new Recorded(8, place => most = Math.Max(most, place - Interlocked.Read(ref taken)));
        foreach (var batch in new Loader<Tensor>(data, 1, shuffle: false, prefetch: prefetch))
        {
            Assert.Equal(taken, batch.item<long>());
            Interlocked.Increment(ref taken);
            Assert.True(data.WaitFor(Math.Min(8, taken + prefetch)));
        }

        Assert.InRange(most, 0, prefetch);
        var reader = Assert.Single(data.Threads.Distinct());
        Assert.Equal(prefetch == 0, reader == Environment.CurrentManagedThreadId);
    }

    /// <summary>A failure comes at its batch, as it was thrown, and the position stays there. Spec: R17.7.</summary>
    [Theory]
    [InlineData(0)]
    [InlineData(1)]
    [InlineData(4)]
    public void Failure_comes_at_its_batch(int prefetch)
    {
        using var scope = NewDisposeScope();
        var whole = false;
        using var data = new Recorded(4, place => _ = place == 2 && !whole ? throw new OperationCanceledException("no third") : 0);
        var loader = new Loader<Tensor>(data, 1, shuffle: false, prefetch: prefetch);
        List<long> seen = [];

        var error = Assert.Throws<OperationCanceledException>(() => seen.AddRange(loader.Select(batch => batch.item<long>())));

        Assert.Equal("no third", error.Message);
        Assert.Contains(nameof(Recorded), error.StackTrace, StringComparison.Ordinal);
        Assert.Equal(2, loader.position);
        Assert.True(data.Ended());
        whole = true;
        Assert.Equal([2, 3], loader.Select(batch => batch.item<long>()));
    }

    /// <summary>The thread has ended when an iteration has: at its end, broken off, or failed in its body. Spec: R17.8.</summary>
    [Theory]
    [InlineData("end")]
    [InlineData("break")]
    [InlineData("throw")]
    [InlineData("dispose")]
    public void Thread_ends_with_the_iteration(string way)
    {
        using var scope = NewDisposeScope();
        using var data = new Recorded(6);
        var loader = new Loader<Tensor>(data, 1, prefetch: 2);
        switch (way)
        {
            case "end":
                Assert.Equal(6, loader.ToList().Count);
                break;
            case "break":
                Assert.NotNull(loader.First());
                break;
            case "throw":
                Assert.Throws<NotSupportedException>(() => loader.Select<Tensor, int>(_ => throw new NotSupportedException()).ToList());
                break;
            default:
                var batches = loader.GetEnumerator();
                Assert.True(batches.MoveNext());
                batches.Dispose();
                Assert.False(batches.MoveNext());
                break;
        }

        Assert.True(data.Ended());
    }

    /// <summary>The thread of an iteration that is forgotten ends when that is collected. Spec: R17.8.</summary>
    [Fact]
    public void Thread_ends_when_the_iteration_is_collected()
    {
        using var data = new Recorded(1000);
        Forget(data);
        for (var i = 0; i < 100 && !data.Ended(); i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
            Thread.Sleep(10);
        }

        Assert.True(data.Ended());
    }

    /// <summary>The tensors of a batch belong to the dispose scope of who takes it, and nothing is left of the others. Spec: R17.8.</summary>
    [Theory]
    [InlineData(0)]
    [InlineData(2)]
    public void Batches_belong_to_who_takes_them(int prefetch)
    {
        using var outer = NewDisposeScope();
        var data = (arange(40).reshape(10, 4), arange(10));
        var before = Same.Live();
        var loader = new Loader<(Tensor X, Tensor Y)>(data, 2, prefetch: prefetch);
        using (NewDisposeScope())
        {
            foreach (var (x, y) in loader.Take(2))
            {
                Assert.False(x.IsInvalid || y.IsInvalid);
            }
        }

        Assert.Equal(before, Tensor.TotalCount);
        foreach (var (x, y) in loader)
        {
            using var step = NewDisposeScope();
            step.Attach(x, y);
        }

        Assert.Equal(before, Same.Live());
    }

    /// <summary>Who keeps no batch can have each disposed when the next is taken. Spec: R17.8.</summary>
    [Theory]
    [InlineData(0)]
    [InlineData(2)]
    public void Batches_can_be_disposed_by_the_loader(int prefetch)
    {
        using var data = arange(10);
        var before = Same.Live();
        Tensor? last = null;
        foreach (var batch in new Loader<Tensor>(data, 2, prefetch: prefetch, dispose_batches: true).Take(3))
        {
            Assert.NotEqual(false, last?.IsInvalid);
            Assert.Equal(2, batch.size(0));
            last = batch;
        }

        Assert.True(last!.IsInvalid);
        Assert.Equal(before, Tensor.TotalCount);
    }

    /// <summary>Without a dispose scope a batch is its taker's to dispose. Spec: R17.8.</summary>
    [Fact]
    public void Batches_outlive_the_iteration()
    {
        using var data = arange(6);
        var before = Same.Live();
        var batches = new Loader<Tensor>(data, 2, shuffle: false).ToList();
        Assert.Equal([2, 3], batches[1].data<long>().ToArray());
        batches.ForEach(batch => batch.Dispose());
        batches.Clear();
        Assert.Equal(before, Same.Live());
    }

    /// <summary>Samples of a list stay their owner's, taken or not. Spec: R17.8.</summary>
    [Fact]
    public void Samples_stay_their_owners()
    {
        using var outer = NewDisposeScope();
        Tensor[] samples = [ones(1), ones(2), ones(3), ones(4)];
        using (NewDisposeScope())
        {
            Assert.Equal(1, new Loader<List<Tensor>>(samples, 1, collate: "list", shuffle: false).First()[0].size(0));
            Assert.Equal(4, new Loader<Tensor>(new[] { 1, 2, 3, 4 }, 4).First().size(0));
        }

        Assert.DoesNotContain(samples, sample => sample.IsInvalid);
    }

    /// <summary>The caller's grad mode holds, and its random stream is left alone. Spec: R17.6.</summary>
    [Theory]
    [InlineData(0)]
    [InlineData(2)]
    public void Caller_stays_as_it_is(int prefetch)
    {
        using var scope = NewDisposeScope();
        var before = Same.Bits(random.get_rng_state());
        var weight = ones(3, requires_grad: true);
        Assert.True(new Loader<Tensor>(weight, 3, prefetch: prefetch).Single().requires_grad);
        using (no_grad())
        {
            Assert.False(new Loader<Tensor>(weight, 3, prefetch: prefetch).Single().requires_grad);
        }

        Assert.True(is_grad_enabled());
        Assert.Equal(before, Same.Bits(random.get_rng_state()));
    }

    [System.Runtime.CompilerServices.MethodImpl(System.Runtime.CompilerServices.MethodImplOptions.NoInlining)]
    private static void Forget(Recorded data)
    {
        var batches = new Loader<Tensor>(data, 1, prefetch: 2).GetEnumerator();
        Assert.True(batches.MoveNext());
    }
}
