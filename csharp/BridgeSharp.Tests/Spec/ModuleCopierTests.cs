using System.Collections.Concurrent;
using System.Collections.Frozen;
using System.Collections.Immutable;
using System.Collections.ObjectModel;
using System.Linq.Expressions;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Copying modules of every kind.</summary>
[Collection(nameof(Serial))]
public sealed class ModuleCopierTests
{
    /// <summary>Modules in lists, dicts, sequences, arrays, dictionaries, tuples and closures are the copy's own. Spec: R4.1.</summary>
    [Fact]
    public void Containers_are_copied()
    {
        using var scope = NewDisposeScope();
        var model = new Containers();
        var inputs = randn(4, 2);
        var expected = model.call(inputs);

        var copy = replicate(model, [CPU, CPU])[1];
        Same.Trees(expected, copy.call(inputs));
        foreach (var parameter in model.parameters())
        {
            parameter.detach().zero_();
        }

        Same.Trees(expected, copy.call(inputs));
        Assert.Equal(model.named_parameters().Select(named => named.name), copy.named_parameters().Select(named => named.name));
        copy.call(inputs).sum().backward();
        Assert.All(copy.parameters(), parameter => Assert.NotNull(parameter.grad));
        Assert.All(model.parameters(), parameter => Assert.Null(parameter.grad));
    }

    /// <summary>Every common layer can be copied, computes the same and is in the mode of its original. Spec: R4.1, R4.2.</summary>
    [Fact]
    public void Layers_are_copied()
    {
        using var scope = NewDisposeScope();
        var model = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 2, 3, padding: 1), nn.GroupNorm(1, 2),
            nn.GELU(), nn.AvgPool2d(2), nn.Dropout(0.5), nn.Flatten(), nn.LayerNorm(18), nn.Linear(18, 4), nn.Sigmoid(), nn.Softmax(1));
        var inputs = randn(3, 1, 14, 14);
        model.call(inputs);
        model.eval();
        var expected = model.call(inputs);

        var copy = replicate(model, [CPU, CPU])[1];

        Assert.All(copy.modules(), module => Assert.False(module.training));
        Same.Trees(expected, copy.call(inputs));
        copy.train();
        Assert.False(model.training);
        Assert.True(copy.children().First().training);
    }

    /// <summary>A copy can be moved to another dtype as its original can. Spec: R4.1.</summary>
    [Fact]
    public void Copies_can_be_converted()
    {
        using var scope = NewDisposeScope();
        var copy = replicate(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), [CPU, CPU])[1].to(float64);

        Assert.All(copy.parameters(), parameter => Assert.Equal(float64, parameter.dtype));
        Assert.Equal(float64, copy.call(ones(2, 3, dtype: float64)).dtype);
    }

    /// <summary>.NET's collections hold the copy's modules, and find them by their keys. Spec: R4.4.</summary>
    [Fact]
    public void Collections_are_copied()
    {
        using var scope = NewDisposeScope();
        Linear[] layers = [.. Enumerable.Range(0, 3).Select(_ => nn.Linear(2, 2))];
        Dictionary<Linear, int> numbers = layers.Index().ToDictionary(pair => pair.Item, pair => pair.Index);
        using var model = new Holder((
            new ReadOnlyCollection<Linear>(layers),
            layers.ToImmutableArray(),
            new LinkedList<Linear>(layers),
            new ConcurrentDictionary<Linear, int>(numbers),
            numbers.Keys.ToHashSet(),
            layers.Index().ToFrozenDictionary(pair => $"{pair.Index}", pair => pair.Item),
            new Lazy<Linear>(() => layers[1])));

        var copy = replicate(model, [CPU, CPU])[1];
        var (listed, array, linked, concurrent, set, frozen, lazy) = ((
            ReadOnlyCollection<Linear>, ImmutableArray<Linear>, LinkedList<Linear>, ConcurrentDictionary<Linear, int>,
            HashSet<Linear>, FrozenDictionary<string, Linear>, Lazy<Linear>))copy.Held!;

        Assert.Empty(listed.Intersect(layers));
        Assert.Equal(listed, array);
        Assert.Equal(listed, linked);
        Assert.Equal([0, 1, 2], listed.Select(layer => concurrent[layer]));
        Assert.All(listed, layer => Assert.Contains(layer, set));
        Assert.Equal(listed, frozen.OrderBy(pair => pair.Key).Select(pair => pair.Value));
        Assert.Same(listed[1], lazy.Value);
    }

    /// <summary>TorchSharp's lists and dicts of parameters hold the copy's. Spec: R4.4.</summary>
    [Fact]
    public void Parameter_containers_are_copied()
    {
        using var scope = NewDisposeScope();
        var list = nn.ParameterList(new Parameter(ones(1)), new Parameter(ones(2)));
        var dict = nn.ParameterDict(("a", list[0]), ("b", new Parameter(ones(3))));
        using var model = new Holder((list, dict));

        var (copied, named) = ((ParameterList, ParameterDict))replicate(model, [CPU, CPU])[1].Held!;
        list[0].detach().zero_();

        Assert.Equal([1L, 2L, 3L], copied.Append(named["b"]).Select(parameter => parameter.sum().item<float>()).Select(sum => (long)sum));
        Assert.Same(copied[0], named["a"]);
    }

    /// <summary>What cannot be copied is refused by the name of its field. Spec: R4.8.</summary>
    [Fact]
    public void What_cannot_be_copied_is_named()
    {
        using var local = new ThreadLocal<int>();
        using var layer = nn.Linear(2, 2);
        using var disposed = nn.LSTM(2, 2);
        disposed.Dispose();
        var compiled = Expression.Lambda<Func<int>>(Expression.Constant(1)).Compile();

        var held = new Dictionary<string, object> { ["a b"] = Array.Empty<int>() };
        using var model = new Holder(held);
        foreach (var (value, type, reason) in new (object, string, string)[]
        {
            (local, "ThreadLocal`1", "which holds a native resource"),
            ((nint)1, "IntPtr", "which holds a native resource"),
            (new TaskCompletionSource<int>().Task, "Task`1", "which runs once"),
            (disposed, "LSTM", "which is disposed"),
            (compiled, "Func`1", "which was compiled at run time"),
            (new[] { layer }.ToFrozenSet(), "SmallFrozenSet`1", "which finds its keys by identity"),
        })
        {
            held["a b"] = value;
            var error = Assert.Throws<ArgumentException>(() => replicate(model, [CPU, CPU]));
            Assert.Equal(
                $"replicate: expected a model that can be copied, got Holder.Held[a b] of type {type}, {reason}: give a factory",
                error.Message);
        }
    }

    /// <summary>Copies that nobody needs are collected, disposed or not, and a hook of the model does not keep them. Spec: R4.10.</summary>
    [Fact]
    public void Copies_are_collected()
    {
        using var scope = NewDisposeScope();
        var model = new Holder();
        List<int> calls = [];
        model.Called += module => calls.Add(((Holder)module).Layer is null ? 0 : 1);
        var before = Same.Live();

        var copies = Replicated(model);

        Assert.Equal(before, Same.Live());
        Assert.All(copies, copy => Assert.False(copy.TryGetTarget(out _)));

        static List<WeakReference<Holder>> Replicated(Holder model)
        {
            var copies = replicate(model, [CPU, CPU, CPU]).Skip(1).ToList();
            using var inner = NewDisposeScope();
            copies.ForEach(copy => copy.call(ones(1, 2)));
            return [.. copies.Select(copy => new WeakReference<Holder>(copy))];
        }
    }
}
