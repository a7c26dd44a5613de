using System.Text.Json;
using BridgeSharp.Parity;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Tests.Spec;

/// <summary>The trainer with every kind of loss and option, against one undivided model.</summary>
[Collection(nameof(Serial))]
public sealed class TrainingTests
{
    public static TheoryData<string> Cases => Vectors.Names("training");

    public static TheoryData<string> Options => Vectors.Names("trainer_options");

    /// <summary>Every step leaves an undivided model's. Spec: R7.3, R7.4, R7.5, R7.6, R8.5, R8.6, R22.1.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("training", name);
        var relative = entry.GetProperty("relative").GetDouble();
        using var trainer = Made(entry);
        foreach (var (batch, loss, state) in entry.Items("batches").Zip(entry.Items("losses"), entry.Items("states")))
        {
            var actual = trainer.step(Vectors.Tensor(batch.GetProperty("inputs")), Targets(batch, entry.GetProperty("loss").GetString()!));
            Same.Within(Vectors.Tensor(loss), tensor(actual, dtype: float64), relative);
            AssertState(trainer, state, relative);
        }

        Assert.Equal(entry.Optional("flushed") is not null, trainer.flush());
        Assert.False(trainer.flush());
        AssertState(trainer, entry.Optional("flushed") ?? entry.Items("states")[^1], relative);
    }

    /// <summary>Options out of range are refused, in the words of the vectors. Spec: R8.7.</summary>
    [Theory]
    [MemberData(nameof(Options))]
    public void Options_out_of_range_are_refused(string name)
    {
        var entry = Vectors.Find("trainer_options", name);
        using var model = nn.Linear(1, 1);
        Vectors.Check(entry, () =>
        {
            using var optimizer = new Optim.SGD(model.parameters());
            new Trainer(model, optimizer, (outputs, targets) => mse_loss(outputs, targets), [CPU], Read(entry)).Dispose();
        });
    }

    /// <summary>The error says what came instead. Spec: R8.5.</summary>
    [Theory]
    [InlineData("mean", 2, "shape (2, 1)")]
    [InlineData("count", 0, "shape (0, 1)")]
    [InlineData("sum", -1, "NoneType")]
    public void What_is_no_loss_is_refused(string reduction, long size, string text)
    {
        using var scope = NewDisposeScope();
        var model = nn.Linear(1, 1);
        using var trainer = new Trainer(
            model, parameters => new Optim.SGD(parameters), (_, _) => (size < 0 ? null! : ones(size, 1), 1), TrainerTests.Cpus(2), new TrainerOptions { reduction = reduction });
        var error = Assert.Throws<ReplicaException>(() => trainer.step(ones(2, 1), ones(2, 1)));
        var expected = $"Trainer: expected the loss to return a scalar tensor, got {text}";
        Assert.Equal([expected, expected], error.Failures.Select(failure => failure.Error.Message));
    }

    /// <summary>Fewer than no epochs. Spec: R8.3, R8.7.</summary>
    [Fact]
    public void Numbers_out_of_range_are_refused()
    {
        using var scope = NewDisposeScope();
        var model = nn.Linear(1, 1);
        using var trainer = new Trainer(model, new Optim.SGD(model.parameters()), (outputs, targets) => mse_loss(outputs, targets));
        Assert.Equal("Trainer: expected epochs of at least 0, got -1", Assert.Throws<ArgumentException>(() => trainer.fit([], -1)).Message);
    }

    /// <summary>A batch without a token leaves the parameters, and its loss is 0. Spec: R8.6.</summary>
    [Fact]
    public void Nothing_moves_where_nothing_counts()
    {
        using var scope = NewDisposeScope();
        var model = nn.Linear(2, 3);
        using var trainer = new Trainer(
            model, parameters => new Optim.Adam(parameters), Loss("tokens", "count"), TrainerTests.Cpus(2), new TrainerOptions { reduction = "count" });
        var before = model.weight.detach().clone();
        (object, object)[] batches = [(randn(3, 2), full(3, -1L))];

        Assert.Equal(0, trainer.step(batches[0].Item1, batches[0].Item2));
        Assert.Equal(0, trainer.evaluate(batches));
        Assert.Equal([0.0], trainer.fit(batches));
        Same.Trees(before, model.weight.detach());
    }

    /// <summary>A count is finite and not negative; the failure of every replica says so. Spec: R8.5.</summary>
    [Theory]
    [InlineData(double.NaN, "nan")]
    [InlineData(-1.0, "-1.0")]
    [InlineData(double.PositiveInfinity, "inf")]
    public void A_count_out_of_range_is_refused(double count, string text)
    {
        using var scope = NewDisposeScope();
        var model = nn.Linear(1, 1);
        using var trainer = new Trainer(
            model, parameters => new Optim.SGD(parameters), (outputs, _) => (((Tensor)outputs).sum(), count), TrainerTests.Cpus(2), new TrainerOptions { reduction = "count" });

        var error = Assert.Throws<ReplicaException>(() => trainer.step(ones(2, 1), ones(2, 1)));

        Assert.Equal(2, error.Failures.Count);
        Assert.All(error.Failures, failure => Assert.Equal($"Trainer: expected a count that is finite and not negative, got {text}", failure.Error.Message));
    }

    /// <summary>With every reduction the mean over uneven batches is one of all samples. Spec: R8.3, R8.4.</summary>
    [Theory]
    [InlineData("sum")]
    [InlineData("count")]
    public void Epochs_and_evaluations_average_alike(string reduction)
    {
        using var scope = NewDisposeScope();
        var model = nn.Linear(1, 3);
        using var trainer = new Trainer(
            model, parameters => new Optim.SGD(parameters, lr: 0), Loss("weighted", reduction), TrainerTests.Cpus(2), new TrainerOptions { reduction = reduction });
        var (inputs, targets) = (randn(7, 1), tensor(new long[] { 0, 1, 2, 2, 2, 1, 0 }));
        var (total, count) = Loss("weighted", "count")(model.call(inputs), targets);
        (object, object)[] batches = [(inputs[..2], targets[..2]), (inputs[2..], targets[2..])];
        var expected = total.item<float>() / (reduction == "sum" ? 7 : count);

        Assert.Equal(expected, trainer.fit(batches).Single(), 1e-5);
        Assert.Equal(expected, trainer.evaluate(batches), 1e-5);
    }

    /// <summary>Each epoch ends with an update from what waits. Spec: R7.5, R8.3.</summary>
    [Fact]
    public void Fit_flushes_the_tail_of_every_epoch()
    {
        using var scope = NewDisposeScope();
        using var model = nn.Linear(1, 1);
        using var trainer = new Trainer(
            model, new Optim.SGD(model.parameters()), (outputs, targets) => mse_loss(outputs, targets), TrainerTests.Cpus(2), new TrainerOptions { accumulate = 2 });
        trainer.fit(Enumerable.Repeat<(object, object)>((ones(2, 1), ones(2, 1)), 3), epochs: 2);
        Assert.Equal(4, trainer.updates);
    }

    /// <summary>Batches of bfloat16 gradients are added in float32 and rounded once. Spec: R5.7, R7.5.</summary>
    [Fact]
    public void Half_precision_is_accumulated_in_single()
    {
        using var scope = NewDisposeScope();
        var model = nn.Linear(1, 1, hasBias: false).to(bfloat16);
        using var trainer = new Trainer(
            model, new Optim.SGD(model.parameters(), lr: 0), (outputs, _) => outputs.sum(), TrainerTests.Cpus(2), new TrainerOptions { reduction = "sum", accumulate = 3 });
        foreach (var value in new[] { 256f, 1, 1 })
        {
            trainer.step(full(1, 1, value).to(bfloat16), zeros(1));
        }

        Assert.Equal(bfloat16, model.weight.grad!.dtype);
        Assert.Equal(258, model.weight.grad!.to(float32).item<float>());
    }

    /// <summary>Make a loss of the training vectors, whose form the file describes.</summary>
    internal static Func<object, object, (Tensor, double)> Loss(string kind, string reduction) => (outputs, targets) =>
    {
        var (total, count) = SumAndCount(kind, (Tensor)outputs, (Tensor)targets);
        return (reduction == "mean" ? total / count : total, count);
    };

    private static (Tensor Sum, double Count) SumAndCount(string kind, Tensor outputs, Tensor targets)
    {
        switch (kind)
        {
            case "tokens":
                return (cross_entropy(outputs, targets, ignore_index: -1, reduction: nn.Reduction.Sum), targets.ne(-1).sum().item<long>());
            case "weighted":
                var weight = tensor(new[] { 0.5, 1, 2 }).to(outputs.dtype);
                return (cross_entropy(outputs, targets, weight, reduction: nn.Reduction.Sum), weight[targets].sum().to(float64).item<double>());
            case "masked":
                var parts = targets.chunk(2, dim: 1);
                return (((outputs - parts[0]).square() * parts[1]).sum(), parts[1].sum().item<double>());
            default:
                return ((outputs - targets).square().sum(), targets.NumberOfElements);
        }
    }

    private static Trainer Made(JsonElement entry)
    {
        var state = entry.Members("state").ToDictionary(
            member => member.Name, member => Vectors.Tensor(member.Value, member.Name.EndsWith("tracked", StringComparison.Ordinal) ? "int64" : "float64"));
        (string, nn.Module<Tensor, Tensor>)[] norm = state.ContainsKey("norm.weight") ? [("norm", new SyncBatchNorm(3))] : [];
        var model = nn.Sequential([("fc1", nn.Linear(2, 3)), .. norm, ("relu", nn.ReLU()), ("fc2", nn.Linear(3, 3))]).to(float64);
        StateDict.Load(model, state);
        var options = Read(entry);
        return new Trainer(
            model,
            parameters => new Optim.SGD(parameters, entry.GetProperty("lr").GetDouble(), entry.GetProperty("momentum").GetDouble()),
            Loss(entry.GetProperty("loss").GetString()!, options.reduction),
            TrainerTests.Cpus(entry.GetProperty("replicas").GetInt32()),
            options);
    }

    private static TrainerOptions Read(JsonElement entry)
    {
        var given = entry.GetProperty("options");
        var options = new TrainerOptions();
        return options with
        {
            reduction = given.Optional("reduction")?.GetString() ?? options.reduction,
            mode = given.Optional("mode")?.GetString() ?? options.mode,
            buffers = given.Optional("buffers")?.GetString() ?? options.buffers,
            accumulate = given.Optional("accumulate")?.GetInt32() ?? options.accumulate,
            clip_norm = given.Optional("clip_norm") is { } norm ? Vectors.Number(norm) : null,
            clip_value = given.Optional("clip_value") is { } value ? Vectors.Number(value) : null,
            scaling = given.Optional("scaling") is { } scaling ? new LinearScaling(scaling.GetProperty("factor").GetDouble(), scaling.GetProperty("warm_up").GetInt32()) : null,
        };
    }

    private static Tensor Targets(JsonElement batch, string loss)
        => Vectors.Tensor(batch.GetProperty("targets"), loss is "tokens" or "weighted" ? "int64" : "float64");

    private static void AssertState(Trainer trainer, JsonElement state, double relative)
    {
        foreach (var (name, value) in trainer.replicas.SelectMany(StateDict.Of))
        {
            Same.Within(Vectors.Tensor(state.GetProperty(name), Digest.dtype_name(value.dtype)), value, value.is_floating_point() ? relative : 0);
        }
    }
}
