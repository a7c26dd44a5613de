using System.Collections.Concurrent;
using System.Collections.Frozen;
using System.Collections.Immutable;
using System.Collections.ObjectModel;
using TorchSharp;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>The containers that scatter takes apart, and what it makes of them.</summary>
[Collection(nameof(Serial))]
public sealed class TreeTests
{
    private static readonly Device[] Two = [CPU, CPU];

    /// <summary>Arrays, lists, dictionaries and tuples of any length keep their type. Spec: R1.2, R1.3.</summary>
    [Fact]
    public void Types_stay()
    {
        using var scope = NewDisposeScope();
        var typed = (new Dictionary<string, Tensor> { ["x"] = X() }, new[] { "a", "b" }, new List<int> { 3, 4 });
        var wide = (X(), 1, 2, 3, 4, 5, 6, 7, Tuple.Create(X(), "last"));

        var second = scatter(typed, Two)[1];
        var widest = scatter(wide, Two)[1];

        Assert.Equal([2], Doubles(second.Item1["x"]));
        Assert.Equal(["b"], second.Item2);
        Assert.Equal([4], second.Item3);
        Assert.Equal((7, "last"), (widest.Item8, widest.Item9.Item2));
        Assert.Equal([2], Doubles(widest.Item9.Item1));
    }

    /// <summary>Lists of every kind are split by sample and keep their type. Spec: R1.3.</summary>
    [Fact]
    public void Lists_keep_their_type()
    {
        string[] items = ["a", "b", "c"];
        Assert.Equal(["c"], scatter<IReadOnlyList<string>>(["a", "b", "c"], Two)[1]);
        Assert.Equal(["a", "b"], scatter<IReadOnlyList<string>>(items.Select(item => item).ToList().AsReadOnly(), Two)[0]);
        Assert.Equal(["c"], scatter(items.ToImmutableArray(), Two)[1]);
        Assert.Equal(["c"], scatter(items.ToImmutableList(), Two)[1]);
        Assert.Equal(["c"], scatter(new Collection<string>([.. items]), Two)[1]);
        Assert.Equal(["c"], scatter(new ReadOnlyCollection<string>(items), Two)[1]);
        Assert.Equal(["c"], scatter(new ArraySegment<string>(items), Two)[1]);
        Assert.Equal(["c"], scatter<IList<string>>([.. items], Two)[1]);
        Assert.Equal(["c"], scatter(new Samples { "a", "b", "c" }, Two)[1]);
        Assert.Equal([2], scatter((IReadOnlyList<int>)Enumerable.Range(0, 3).ToImmutableArray(), Two)[1]);
    }

    /// <summary>Dictionaries of every kind keep their type, their order and their comparer. Spec: R1.2.</summary>
    [Fact]
    public void Dictionaries_keep_their_type()
    {
        using var scope = NewDisposeScope();
        var pairs = new Dictionary<string, Tensor>(StringComparer.OrdinalIgnoreCase) { ["X"] = X(), ["A"] = X() };

        Assert.Equal([2], Doubles(scatter(pairs, Two)[1]["x"]));
        Assert.Equal([2], Doubles(scatter(pairs.ToImmutableDictionary(StringComparer.OrdinalIgnoreCase), Two)[1]["x"]));
        Assert.Equal([2], Doubles(scatter(pairs.ToFrozenDictionary(StringComparer.OrdinalIgnoreCase), Two)[1]["x"]));
        Assert.Equal([2], Doubles(scatter(new SortedDictionary<string, Tensor>(pairs, StringComparer.OrdinalIgnoreCase), Two)[1]["x"]));
        Assert.Equal([2], Doubles(scatter(new ConcurrentDictionary<string, Tensor>(pairs, StringComparer.OrdinalIgnoreCase), Two)[1]["x"]));
        Assert.Equal(["X", "A"], scatter(new OrderedDictionary<string, Tensor>(pairs), Two)[1].Keys);
        Assert.Equal(["X", "A"], scatter(new ReadOnlyDictionary<string, Tensor>(pairs), Two)[1].Keys);
        Assert.Equal([2], Doubles(scatter(new Dictionary<(int, int), Tensor> { [(1, 2)] = X() }, Two)[1][(1, 2)]));
    }

    /// <summary>Records and types with init properties are split field by field and keep their type. Spec: R1.2.</summary>
    [Fact]
    public void Records_keep_their_type()
    {
        using var scope = NewDisposeScope();
        var inner = new Point(X(), 3);
        var second = scatter(new Batch(X(), inner) { Names = ["a", "b"] }, Two)[1];
        var derived = scatter<Batch>(new Derived(X(), inner, X()) { Names = ["a", "b"] }, Two)[1];
        var plain = scatter(new Options { Mask = X(), Scale = 0.5 }, Two)[1];

        Assert.Equal([2], Doubles(second.X));
        Assert.Equal([2], Doubles(second.Point.X));
        Assert.Equal((3, "b"), (second.Point.Count, second.Names.Single()));
        Assert.Equal([2], Doubles(Assert.IsType<Derived>(derived).Y));
        Assert.Equal("b", derived.Names.Single());
        Assert.Equal([2], Doubles(plain.Mask));
        Assert.Equal((0.5, 1), (plain.Scale, plain.Size));
    }

    /// <summary>No constructor runs again: what it changed is changed once. Spec: R1.2.</summary>
    [Fact]
    public void Constructors_do_not_run_again()
    {
        using var scope = NewDisposeScope();
        var second = scatter(new Prepared(X()), Two)[1];

        Assert.Equal([4], Doubles(second.X));
        Assert.Equal([-4], Doubles(second.Twin));
    }

    /// <summary>What holds samples goes to no shard as a whole, and is named. Spec: R1.6.</summary>
    [Fact]
    public void What_cannot_be_split_is_refused()
    {
        using var scope = NewDisposeScope();
#pragma warning disable CA1814 // A user may have one.
        object[] refused = [new HashSet<string>(), new Queue<int>(), new int[2, 2], Enumerable.Range(0, 2).Where(i => i > 0), new Opaque(X()), new Opaque(new List<(string, Tensor)> { ("x", X()) })];
#pragma warning restore CA1814
        string[] names = ["HashSet", "Queue", "Int32[,]", "Iterator", "Opaque", "Opaque"];
        foreach (var (value, name) in refused.Zip(names))
        {
            var error = Assert.Throws<ArgumentException>(() => scatter((X(), value), Two));
            Assert.StartsWith("scatter: expected inputs[1] to be a tensor, a list, a tuple, a dict or a plain value, got ", error.Message, StringComparison.Ordinal);
            Assert.EndsWith(name, error.Message, StringComparison.Ordinal);
        }
    }

    /// <summary>A list that cannot be made of its items is named. Spec: R1.3.</summary>
    [Fact]
    public void Types_without_a_constructor_are_named()
    {
        var error = Assert.Throws<ArgumentException>(() => scatter(new Closed(2), Two));
        Assert.Equal("nested arguments: expected a type with a constructor that takes its items, got Closed", error.Message);
    }

    /// <summary>A packed sequence is not split: its samples are not apart. Spec: R1.6.</summary>
    [Fact]
    public void Packed_sequences_are_refused()
    {
        using var scope = NewDisposeScope();
        using var packed = nn.utils.rnn.pack_sequence([ones(2), ones(1)]);
        var error = Assert.Throws<ArgumentException>(() => scatter(packed, Two));
        Assert.EndsWith("got PackedSequence", error.Message, StringComparison.Ordinal);
    }

    /// <summary>Objects without samples, modules and functions go to every shard as they are. Spec: R1.2.</summary>
    [Fact]
    public void Plain_objects_go_to_every_shard()
    {
        using var scope = NewDisposeScope();
        using var layers = nn.ModuleList(nn.Linear(1, 1));
        object?[] plain = [new(), layers, new Func<int>(() => 1), ScalarType.Float32, 3, 0.5, "ab", DateTime.UnixEpoch, CPU, new Size([1, 2]), null];
        foreach (var value in plain)
        {
            Assert.All(scatter((X(), value), Two), shard => Assert.Equal(value, shard.value));
        }
    }

    private static Tensor X() => tensor([1.0, 2.0]);

    private static double[] Doubles(Tensor tensor) => tensor.data<double>().ToArray();

    private record Batch(Tensor X, Point Point)
    {
        public required IReadOnlyList<string> Names { get; init; }
    }

    private sealed record Derived(Tensor X, Point Point, Tensor Y) : Batch(X, Point);

    private readonly record struct Point(Tensor X, int Count);

    private sealed class Options
    {
        public required Tensor Mask { get; init; }

        public double Scale { get; init; }

        public long Size => Mask.size(0);
    }

    private sealed class Samples : List<string>;

    private sealed class Closed(int count) : IReadOnlyList<int>
    {
        public int Count => count;

        public int this[int index] => index;

        public IEnumerator<int> GetEnumerator() => Enumerable.Range(0, count).GetEnumerator();

        System.Collections.IEnumerator System.Collections.IEnumerable.GetEnumerator() => GetEnumerator();
    }

    private sealed record Prepared
    {
        public Prepared(Tensor x)
        {
            X = x * 2;
            Twin = -X;
        }

        public Tensor X { get; }

        public Tensor Twin { get; }
    }

    private sealed class Opaque(object x)
    {
        public override string ToString() => $"{x}";
    }
}
