using BridgeSharp.Parallel;
using TorchSharp;
using Xunit;
using static BridgeSharp.Parallel.Group;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Replicas that run together: what they exchange, whose turn it is, and what breaks them.</summary>
[Collection(nameof(Serial))]
public sealed class GroupTests
{
    /// <summary>How many replicas, and whether they take turns.</summary>
    public static TheoryData<int, bool> Ways => new() { { 2, false }, { 3, false }, { 4, false }, { 2, true }, { 3, true }, { 4, true } };

    /// <summary>Outside a group the caller gets its own value. Spec: R19.1.</summary>
    [Fact]
    public void A_caller_alone_is_one_replica() => Assert.Equal([5], exchange(5));

    /// <summary>In replica order, in round after round. Spec: R19.1.</summary>
    [Theory]
    [MemberData(nameof(Ways))]
    public void Every_replica_gets_the_values_of_all(int count, bool in_turn)
    {
        var results = Run(count, in_turn, index => Enumerable.Range(0, 20).Select(number => string.Join(' ', exchange((10 * number) + index))).ToList());

        var rounds = Enumerable.Range(0, 20).Select(number => string.Join(' ', Enumerable.Range(0, count).Select(index => (10 * number) + index))).ToList();
        Assert.All(results, result => Assert.Equal(rounds, result));
    }

    /// <summary>Those who wait fail too, and nothing hangs, time after time. Spec: R19.2.</summary>
    [Theory]
    [MemberData(nameof(Ways))]
    public void A_failing_replica_breaks_the_exchange(int count, bool in_turn)
    {
        for (var repetition = 0; repetition < 200; repetition++)
        {
            var failing = repetition % count;
            var results = Run(count, in_turn, index =>
            {
                exchange(0);
                return index == failing ? throw new ArgumentException("own failure") : exchange(1);
            });

            Assert.Equal("own failure", Assert.IsType<ArgumentException>(results[failing]).Message);
            results.RemoveAt(failing);
            Assert.All(results, error => Assert.Equal(
                $"exchange: expected every replica, but replica {failing} failed", Assert.IsType<BrokenGroupException>(error).Message));
        }
    }

    /// <summary>One that never comes is not waited for. Spec: R19.2.</summary>
    [Theory]
    [MemberData(nameof(Ways))]
    public void A_replica_that_ends_early_breaks_the_exchange(int count, bool in_turn)
    {
        for (var repetition = 0; repetition < 200; repetition++)
        {
            var ending = repetition % count;
            var results = Run(count, in_turn, index => index == ending ? "early" : exchange(index));

            Assert.Equal("early", results[ending]);
            results.RemoveAt(ending);
            Assert.All(results, error => Assert.Equal(
                $"exchange: expected every replica, but replica {ending} ended without coming to it", Assert.IsType<BrokenGroupException>(error).Message));
        }
    }

    /// <summary>It goes on in its turn, and every later exchange is broken too. Spec: R19.2, R19.3.</summary>
    [Fact]
    public void A_replica_may_go_on_after_a_broken_exchange()
    {
        var running = 0;
        var results = Run(3, in_turn: true, index =>
        {
            if (index == 2)
            {
                throw new ArgumentException("own failure");
            }

            Assert.Throws<BrokenGroupException>(() => exchange(index));
            Assert.Equal(1, Interlocked.Increment(ref running));
            Thread.Sleep(10);
            Interlocked.Decrement(ref running);
            Assert.Throws<BrokenGroupException>(() => exchange(index));
            return "on";
        });
        Assert.Equal(["on", "on"], results.Take(2));
    }

    /// <summary>The first that can go on does, and one that waits hands the turn on. Spec: R19.3.</summary>
    [Fact]
    public void In_turn_one_replica_runs_at_a_time()
    {
        List<string> order = [];
        Run(3, in_turn: true, index =>
        {
            foreach (var part in "abc")
            {
                order.Add($"{index}{part}");
                exchange(0);
            }

            return "";
        });
        Assert.Equal(["0a", "1a", "2a", "0b", "1b", "2b", "0c", "1c", "2c"], order);
    }

    /// <summary>Across exchanges too: what others draw in between does not count. Spec: R19.3, R20.1.</summary>
    [Fact]
    public void Each_replica_draws_on_its_own_stream()
    {
        using var scope = NewDisposeScope();
        random.manual_seed(3);
        using var states = new RandomStates([CPU, CPU, CPU]);
        var results = Run(3, in_turn: true, _ => Drawn(() => exchange(0)), states);

        for (var index = 0; index < 3; index++)
        {
            random.manual_seed(3 + index);
            Assert.Equal(Drawn(() => []), results[index]);
        }

        static List<float> Drawn(Func<IReadOnlyList<int>> between)
        {
            List<float> drawn = [];
            for (var i = 0; i < 3; i++)
            {
                using var value = rand(1);
                drawn.Add(value.item<float>());
                between();
            }

            return drawn;
        }
    }

    /// <summary>Run a group and return results, or errors in their place.</summary>
    private static List<object> Run(int count, bool in_turn, Func<int, object> function, RandomStates? states = null)
    {
        var results = new object[count];
        new Group(count, states, in_turn).Run([.. Enumerable.Range(0, count).Select(index => new Func<bool>(() => Succeeds(index)))]);
        return [.. results];

        bool Succeeds(int index)
        {
            try
            {
                results[index] = function(index);
                return true;
            }
#pragma warning disable CA1031 // It is the result.
            catch (Exception error)
#pragma warning restore CA1031
            {
                results[index] = error;
                return false;
            }
        }
    }
}
