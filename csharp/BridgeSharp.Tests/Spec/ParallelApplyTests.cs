using TorchSharp;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Running every replica on its shard.</summary>
[Collection(nameof(Serial))]
public sealed class ParallelApplyTests
{
    public static TheoryData<string> Cases => Vectors.Names("parallel_apply");

    /// <summary>Results and refusals are those of the vectors. Spec: R3.1, R3.2, R3.5.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("parallel_apply", name);
        var shards = entry.Items("shards").Select(shard => Vectors.Tree(shard)!).ToList();
        var addends = entry.Items("addends").Select(addend => addend.GetDouble());
        List<Dictionary<string, object?>>? kwargs = entry.Optional("kwargs") is { } named
            ? [.. named.EnumerateArray().Select(dict => (Dictionary<string, object?>)Vectors.Tree(dict)!)]
            : null;
        List<nn.Module> replicas = kwargs is not null || shards is [System.Runtime.CompilerServices.ITuple, ..]
            ? [.. addends.Select(addend => new ScaledSum(addend))]
            : [.. addends.Select(addend => new Net([("addend", tensor(addend, dtype: float64))]))];
        List<Device>? devices = entry.Optional("devices") is { } count ? [.. Enumerable.Repeat(CPU, count.GetInt32())] : null;
        Vectors.Check(entry, () =>
        {
            var results = parallel_apply(replicas, shards, kwargs, devices, entry.Optional("workers")?.GetInt32());
            foreach (var (expected, actual) in entry.Items("results").Select(Vectors.Tree).Zip(results))
            {
                Same.Trees(expected, actual);
            }
        });
    }

    /// <summary>Every replica sees its shard, once, however many run at a time. Spec: R3.1, R3.4.</summary>
    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(3)]
    [InlineData(null)]
    public void Each_replica_runs_once_on_its_own_shard(int? workers)
    {
        var calls = new System.Collections.Concurrent.ConcurrentBag<(int, int)>();
        var replicas = Enumerable.Range(0, 3).Select(replica => new Func<int, int>(shard =>
        {
            calls.Add((replica, shard));
            return 10 * shard;
        })).ToList();

        Assert.Equal([70, 80, 90], parallel_apply(replicas, [7, 8, 9], workers: workers));
        Assert.Equal([(0, 7), (1, 8), (2, 9)], calls.Order());
    }

    /// <summary>All run to their end, and every failure comes with index, device, message and stack. Spec: R3.3.</summary>
    [Theory]
    [InlineData(1)]
    [InlineData(4)]
    public void Every_failure_is_reported(int workers)
    {
        var done = new System.Collections.Concurrent.ConcurrentBag<int>();
        var replicas = Enumerable.Repeat<Func<int, int>>(Run, 4).ToList();

        var error = Assert.Throws<ReplicaException>(() => parallel_apply(replicas, [0, 1, 2, 3], workers: workers));

        Assert.Equal([0, 2], done.Order());
        Assert.StartsWith(
            "parallel_apply: 2 of 4 replicas failed\nin replica 1 on device cpu: KeyNotFoundException: boom 1\n", error.Message, StringComparison.Ordinal);
        Assert.Contains("\nin replica 3 on device cpu: KeyNotFoundException: boom 3\n", error.Message, StringComparison.Ordinal);
        Assert.DoesNotContain("replica 0", error.Message, StringComparison.Ordinal);
        Assert.Contains("and more", error.Message, StringComparison.Ordinal);
        Assert.Contains(nameof(ParallelApplyTests), error.Message, StringComparison.Ordinal);
        Assert.Equal([1, 3], error.Failures.Select(failure => failure.Replica));
        Assert.Equal("KeyNotFoundException: boom 1", error.Failures[0].Summary);
        Assert.Same(error.Failures[0].Error, error.InnerException);

        int Run(int index)
        {
            if (index % 2 == 1)
            {
                throw new KeyNotFoundException($"boom {index}\nand more");
            }

            done.Add(index);
            return index;
        }
    }

    /// <summary>Replicas build graphs where the caller does, also on threads of their own. Spec: R3.4.</summary>
    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    public void Grad_mode_is_the_callers(int workers)
    {
        using var scope = NewDisposeScope();
        var weight = ones(1, requires_grad: true);
        var replicas = Enumerable.Repeat<Func<Tensor, Tensor>>(shard => shard * weight, 2).ToList();
        var shards = new[] { ones(1), ones(1) };

        IReadOnlyList<Tensor> plain;
        using (no_grad())
        {
            plain = parallel_apply(replicas, shards, workers: workers);
        }

        Assert.All(plain, result => Assert.False(result.requires_grad));
        Assert.All(parallel_apply(replicas, shards, workers: workers), result => Assert.True(result.requires_grad));
    }

    /// <summary>Replicas run in inference mode where the caller does, and in no other place. Spec: R3.4.</summary>
    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    public void Inference_mode_is_the_callers(int workers)
    {
        using var scope = NewDisposeScope();
        var replicas = Enumerable.Repeat<Func<int, (bool, bool)>>(_ => (is_inference_mode_enabled(), is_grad_enabled()), 2).ToList();
        using (inference_mode())
        {
            Assert.All(parallel_apply(replicas, [0, 0], workers: workers), modes => Assert.Equal((true, false), modes));
        }

        Assert.All(parallel_apply(replicas, [0, 0], workers: workers), modes => Assert.Equal((false, true), modes));
    }

    /// <summary>The results do not depend on how many replicas run at once. Spec: R3.4.</summary>
    [Fact]
    public void Any_number_of_workers_gives_the_same_bits()
    {
        using var scope = NewDisposeScope();
        random.manual_seed(1);
        var replicas = Enumerable.Range(0, 5).Select(_ => nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 5))).ToList();
        var shards = Enumerable.Range(3, 5).Select(count => (object)randn(count, 20)).ToList();

        var alone = parallel_apply(replicas, shards, workers: 1).ToList();

        foreach (int? workers in new int?[] { 2, 3, 8, null })
        {
            Same.Trees(alone, parallel_apply(replicas, shards, workers: workers).ToList());
        }
    }

    /// <summary>Replicas use as many intra-op threads as the caller, also on threads that had another number before. Spec: R3.4.</summary>
    [Fact]
    public void Threads_are_the_callers()
    {
        var number = get_num_threads();
        var replicas = Enumerable.Repeat<Func<int, int>>(_ => get_num_threads(), 4).ToList();
        try
        {
            foreach (var threads in new[] { 1, 2, 1 })
            {
                set_num_threads(threads);
                Assert.All(parallel_apply(replicas, [0, 0, 0, 0], workers: 4), used => Assert.Equal(threads, used));
            }
        }
        finally
        {
            set_num_threads(number);
        }
    }

    /// <summary>Results belong to the dispose scope of the caller; what a replica made beside them is gone. Spec: R3.1.</summary>
    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    public void Results_belong_to_the_callers_scope(int workers)
    {
        using var outer = NewDisposeScope();
        var replicas = Enumerable.Repeat<Func<Tensor, (Tensor, Tensor)>>(shard => (shard * 2 + 1, shard.sum()), 2).ToList();
        var shards = new[] { ones(2), ones(3) };
        var before = Same.Live();
        IReadOnlyList<(Tensor First, Tensor)> results;
        using (NewDisposeScope())
        {
            results = parallel_apply(replicas, shards, workers: workers);
            Assert.Equal(before + 4, Tensor.TotalCount);
            Assert.Equal(9, results[1].First.sum().item<float>());
        }

        Assert.Equal(before, Tensor.TotalCount);
        Assert.True(results[0].First.IsInvalid);
    }

    /// <summary>Results of replicas that did not fail are not left behind. Spec: R3.3.</summary>
    [Fact]
    public void Failures_leave_nothing()
    {
        var before = Same.Live();
        using (NewDisposeScope())
        {
            Assert.Throws<ReplicaException>(() => parallel_apply<int, Tensor>([_ => ones(2), _ => throw new KeyNotFoundException()], [0, 0]));
        }

        Assert.Equal(before, Tensor.TotalCount);
    }

    private sealed class ScaledSum(double addend) : nn.Module<Tensor, Tensor, Tensor>(nameof(ScaledSum))
    {
        public override Tensor forward(Tensor x, Tensor factor) => (x * factor) + addend;
    }
}
