using System.Text.Json;
using BridgeSharp.Optim;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Tests.Spec;

/// <summary>The trainer: what a step, an epoch and an evaluation do.</summary>
[Collection(nameof(Serial))]
public sealed class TrainerTests
{
    public static TheoryData<string> Cases => Vectors.Names("trainer");

    /// <summary>Every step leaves the loss and the parameters of one undivided model. Spec: R8.1, R8.2.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("trainer", name);
        var model = nn.Sequential(("fc1", nn.Linear(2, 3)), ("relu", nn.ReLU()), ("fc2", nn.Linear(3, 1))).to(float64);
        StateDict.Load(model, entry.Members("state").ToDictionary(member => member.Name, member => Vectors.Tensor(member.Value)));
        using var trainer = new Trainer(model, Optimizer(entry, model), (outputs, targets) => mse_loss(outputs, targets), Cpus(entry.GetProperty("replicas").GetInt32()));
        var relative = entry.GetProperty("relative").GetDouble();
        foreach (var (batch, loss, state) in entry.Items("batches").Zip(entry.Items("losses"), entry.Items("states")))
        {
            var actual = trainer.step(Vectors.Tensor(batch.GetProperty("inputs")), Vectors.Tensor(batch.GetProperty("targets")));
            Same.Within(Vectors.Tensor(loss), tensor(actual, dtype: float64), relative);
            Assert.All(state.EnumerateObject(), member => Same.Within(Vectors.Tensor(member.Value), trainer.state_dict()[member.Name], relative));
        }
    }

    /// <summary>The loss is the mean over the batch, with the weights before the step. Spec: R8.2.</summary>
    [Fact]
    public void Step_returns_the_loss_before_the_update()
    {
        using var scope = NewDisposeScope();
        using var trainer = Linear(2);
        Assert.Equal(41.0 / 3, trainer.step(ones(3, 1), tensor(new[] { 1f, 2f, 6f }).unsqueeze(1)), 1e-5);
        Assert.Equal(3, Weight(trainer.model), 1e-5);
    }

    /// <summary>A gradient from before the step does not count. Spec: R8.2.</summary>
    [Fact]
    public void Gradients_do_not_survive()
    {
        using var scope = NewDisposeScope();
        using var trainer = Linear(2);
        trainer.model.parameters().Single().grad = full(1, 1, 1e6f);

        trainer.step(ones(2, 1), ones(2, 1));
        Assert.Equal(1, Weight(trainer.model));
        trainer.step(ones(1, 1), ones(1, 1));
        Assert.Equal(1, Weight(trainer.model));
    }

    /// <summary>The forward of each replica runs once, on its own shard. Spec: R3.1, R8.1.</summary>
    [Fact]
    public void Forward_runs_once_per_replica_and_step()
    {
        using var scope = NewDisposeScope();
        var model = new Watched();
        using var trainer = new Trainer(model, new Optim.SGD(model.parameters()), (outputs, targets) => mse_loss(outputs, targets), Cpus(3));

        trainer.step(arange(5f), ones(5));

        Assert.Equal(["0 1", "2 3", "4"], Watched.Seen.Order());
    }

    /// <summary>A module of two arguments trains on tuples, with a dictionary of targets. Spec: R8.1, R8.4.</summary>
    [Fact]
    public void Tuples_are_positional_arguments_and_targets_may_be_trees()
    {
        using var scope = NewDisposeScope();
        var model = new Scaled();
        using var trainer = new Trainer(model, new Optim.SGD(model.parameters(), lr: 0.5), Loss, Cpus(2));
        var inputs = (ones(3), full(3, 2f));

        Assert.Equal(4, trainer.step(inputs, new Dictionary<string, Tensor> { ["y"] = zeros(3) }), 1e-6);
        Assert.Equal(-3, model.Weight.item<float>(), 1e-5);
        Assert.Equal(-18, ((Tensor)trainer.predict(inputs)).sum().item<float>(), 1e-4);

        static Tensor Loss(object outputs, object targets) => mse_loss((Tensor)outputs, ((Dictionary<string, Tensor>)targets)["y"]);
    }

    /// <summary>A replica that fails in a step is named, with the message of libtorch. Spec: R3.3.</summary>
    [Fact]
    public void Failures_name_the_replica()
    {
        using var scope = NewDisposeScope();
        using var trainer = Linear(2);
        var error = Assert.Throws<ReplicaException>(() => trainer.step(ones(2, 3), ones(2, 1)));
        Assert.StartsWith("parallel_apply: 2 of 2 replicas failed\nin replica 0 on device cpu: ", error.Message, StringComparison.Ordinal);
    }

    /// <summary>A trainer has at least one device. Spec: R4.3.</summary>
    [Fact]
    public void No_device_is_refused()
    {
        using var model = nn.Linear(1, 1);
        var error = Assert.Throws<ArgumentException>(
            () => new Trainer(model, new Optim.SGD(model.parameters()), (outputs, targets) => mse_loss(outputs, targets), []));
        Assert.Equal("Trainer: expected at least 1 device, got 0", error.Message);
    }

    internal static List<Device> Cpus(int count) => [.. Enumerable.Repeat(CPU, count)];

    internal static double Weight(nn.Module model) => model.parameters().Single().item<float>();

    internal static Trainer Linear(int replicas, double lr = 0.5)
    {
        var model = nn.Linear(1, 1, hasBias: false);
        nn.init.zeros_(model.weight);
        return new Trainer(model, new Optim.SGD(model.parameters(), lr), (outputs, targets) => mse_loss(outputs, targets), Cpus(replicas));
    }

    private static optim.Optimizer Optimizer(JsonElement entry, nn.Module model)
    {
        var options = entry.Members("optimizer").ToDictionary(member => member.Name, member => Vectors.Tree(member.Value)!);
        options.Remove("name", out var name);
        return Optimizers.create((string)name!, model.parameters(), options);
    }

    /// <summary>Notes every input, also those of its copies.</summary>
    private sealed class Watched : nn.Module<Tensor, Tensor>
    {
        public static readonly System.Collections.Concurrent.ConcurrentBag<string> Seen = [];

        private readonly Parameter weight = new(ones(1));

        public Watched()
            : base(nameof(Watched)) => RegisterComponents();

        public override Tensor forward(Tensor input)
        {
            Seen.Add(string.Join(' ', input.data<float>().ToArray()));
            return input * weight;
        }
    }
}
