using System.Text.Json;
using BridgeSharp.Data;
using TorchSharp;
using Xunit;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>The data loader: batches and states.</summary>
[Collection(nameof(Serial))]
public sealed class LoaderTests
{
    public static TheoryData<string> Orders => Vectors.Names("loader");

    public static TheoryData<string> Sources => Vectors.Names("loader_data");

    /// <summary>Epoch after epoch has the batches of PyTorch's loader, however many are read ahead. Spec: R17.1, R17.2, R17.6.</summary>
    [Theory]
    [MemberData(nameof(Orders))]
    public void Order_vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("loader", name);
        var expected = Epochs(entry);
        foreach (var prefetch in new[] { 0, 1, 2, 9 })
        {
            var loader = Made(entry, prefetch);
            Assert.Equal(expected[0].Count, loader.Count);
            Assert.Equal(expected, expected.Select(_ => loader.Select(Values).ToList()));
            Assert.Equal((expected.Count, 0), (loader.epoch, loader.position));
        }
    }

    /// <summary>From the state after any batch, another loader gives exactly the batches that were left. Spec: R17.2, R17.3.</summary>
    [Theory]
    [MemberData(nameof(Orders))]
    public void State_goes_on_after_any_batch(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("loader", name);
        var expected = Epochs(entry);
        var loader = Made(entry, prefetch: 3);
        for (var taken = 0; taken <= 2 * loader.Count; taken++)
        {
            var state = loader.state_dict();
            Assert.Equal(["epoch", "position", "seed"], state.Keys);
            Assert.Equal((taken / loader.Count, taken % loader.Count), (state["epoch"], state["position"]));
            Assert.Equal((loader.epoch, loader.position), (state["epoch"], state["position"]));
            var other = new Loader<Tensor>(Numbers(entry), entry.GetProperty("options").GetProperty("batch_size").GetInt64(), seed: 99,
                shuffle: Option(entry, "shuffle", true), drop_last: Option(entry, "drop_last", false), prefetch: taken % 3);
            other.load_state_dict(JsonSerializer.Deserialize<Dictionary<string, long>>(JsonSerializer.Serialize(state))!);
            Assert.Equal(expected[(int)state["epoch"]].Skip((int)state["position"]), other.Select(Values));
            loader.First().Dispose();
        }
    }

    /// <summary>Data sets of every kind give the batches of the vectors, or are refused. Spec: R17.1, R17.3, R17.4, R17.5.</summary>
    [Theory]
    [MemberData(nameof(Sources))]
    public void Data_vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("loader_data", name);
        foreach (var prefetch in new[] { 0, 2 })
        {
            Vectors.Check(entry, () =>
            {
                var options = entry.GetProperty("options");
                var loader = new Loader<object>(
                    Vectors.Tree(entry.GetProperty("dataset"))!,
                    options.GetProperty("batch_size").GetInt64(),
                    Option(entry, "shuffle", false),
                    options.Optional("seed")?.GetInt64() ?? 0,
                    Option(entry, "drop_last", false),
                    options.Optional("prefetch")?.GetInt32() ?? prefetch,
                    options.Optional("collate")?.GetString() ?? "stack");
                if (entry.Optional("state") is { } state)
                {
                    loader.load_state_dict(state.Deserialize<Dictionary<string, long>>()!);
                }

                var batches = loader.ToList();
                Same.Trees(entry.Items("batches").Select(Vectors.Tree).ToList(), batches);
            });
        }
    }

    /// <summary>Breaking off loses nothing, and an iteration that a later one or a state has ended says so. Spec: R17.2, R17.3.</summary>
    [Fact]
    public void One_iteration_at_a_time()
    {
        using var scope = NewDisposeScope();
        var loader = new Loader<Tensor>(new[] { 0, 1, 2, 3, 4 }, 2, shuffle: false);
        using var first = loader.GetEnumerator();
        Assert.True(first.MoveNext());
        using var second = loader.GetEnumerator();
        Assert.True(second.MoveNext());
        Assert.Equal([[0, 1], [2, 3]], new[] { Values(first.Current), Values(second.Current) });

        var error = Assert.Throws<InvalidOperationException>(() => first.MoveNext());

        Assert.Equal("Loader: expected the latest iteration, got one that has been ended", error.Message);
        loader.load_state_dict(new Dictionary<string, long> { ["epoch"] = 4, ["position"] = 1, ["seed"] = 3 });
        Assert.Throws<InvalidOperationException>(() => second.MoveNext());
        Assert.Equal([[2, 3], [4]], loader.Select(Values));
        Assert.Equal((5, 0, 3), (loader.epoch, loader.position, loader.state_dict()["seed"]));
    }

    /// <summary>A state that is refused changes nothing. Spec: R17.5.</summary>
    [Fact]
    public void Refused_state_changes_nothing()
    {
        using var scope = NewDisposeScope();
        var loader = new Loader<Tensor>(new[] { 0, 1, 2 }, 1, shuffle: false);
        using var batches = loader.GetEnumerator();
        Assert.True(batches.MoveNext());
        Assert.Throws<ArgumentException>(
            () => loader.load_state_dict(new Dictionary<string, long> { ["epoch"] = 1, ["position"] = 3, ["seed"] = 1 }));
        Assert.True(batches.MoveNext());
        Assert.Equal([1], Values(batches.Current));
    }

    /// <summary>A trainer goes over a loader as over the batches themselves. Spec: R17.1, R17.2.</summary>
    [Fact]
    public void Trainer_fits_a_loader()
    {
        using var scope = NewDisposeScope();
        var data = (arange(10, dtype: float64).reshape(5, 2) / 8, arange(5, dtype: float64).reshape(5, 1) / 4);

        var fitted = Trained(trainer => trainer.fit(new Loader<(object, object)>(data, 2, seed: 3), epochs: 2));
        var stepped = Trained(trainer =>
        {
            foreach (var epoch in new[] { 0, 1 })
            {
                foreach (var indices in Order.order(5, 3, epoch).split(2))
                {
                    trainer.step(data.Item1[indices], data.Item2[indices]);
                }
            }
        });

        Same.Trees(stepped, fitted);

        static Tensor Trained(Action<Trainer> train)
        {
            random.manual_seed(0);
            var model = nn.Linear(2, 1, dtype: float64);
            using var optimizer = new Optim.SGD(model.parameters(), lr: 0.5);
            using var trainer = new Trainer(model, optimizer, (outputs, targets) => nn.functional.mse_loss(outputs, targets), [CPU, CPU]);
            train(trainer);
            return model.weight.detach();
        }
    }

    private static List<List<long[]>> Epochs(JsonElement entry)
        => [.. entry.Items("epochs").Select(epoch => epoch.Deserialize<List<long[]>>()!)];

    private static List<long> Numbers(JsonElement entry) => [.. Enumerable.Range(0, entry.GetProperty("count").GetInt32()).Select(i => (long)i)];

    private static Loader<Tensor> Made(JsonElement entry, int prefetch) => new(
        Numbers(entry),
        entry.GetProperty("options").GetProperty("batch_size").GetInt64(),
        Option(entry, "shuffle", true),
        entry.GetProperty("options").Optional("seed")?.GetInt64() ?? 0,
        Option(entry, "drop_last", false),
        prefetch);

    private static bool Option(JsonElement entry, string name, bool otherwise)
        => entry.GetProperty("options").Optional(name)?.GetBoolean() ?? otherwise;

    private static long[] Values(Tensor tensor) => tensor.data<long>().ToArray();
}
