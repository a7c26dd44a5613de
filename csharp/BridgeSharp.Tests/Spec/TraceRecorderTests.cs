using System.Text.Json.Nodes;
using BridgeSharp.Parallel;
using BridgeSharp.Trace;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static TorchSharp.torch;
using Adam = BridgeSharp.Optim.Adam;
using functional = TorchSharp.torch.nn.functional;
using TraceRecorder = BridgeSharp.Trace.Recorder;

namespace BridgeSharp.Tests.Spec;

/// <summary>What a recorder takes down of a loop, and that it changes nothing.</summary>
[Collection(nameof(Serial))]
public sealed class TraceRecorderTests
{
    /// <summary>A recorded run has the bits of one that is not: state, gradients, random stream; no tensor is left. Spec: R30.6.</summary>
    [Fact]
    public void Observation_changes_nothing()
    {
        using var folder = new TraceFolder();
        Train(null);
        var start = Same.Live();
        var plain = Train(null);
        var left = Same.Live() - start;
        var recorded = Train(folder.Path);
        Assert.Equal(plain, recorded);
        Assert.Equal(left, Same.Live() - start - left);
    }

    /// <summary>Inputs and outputs come in the order of execution, and calls are numbered. Spec: R30.1, R30.4.</summary>
    [Fact]
    public void Layers_are_observed_in_order()
    {
        using var folder = new TraceFolder();
        Train(folder.Path);
        var records = folder.Read();
        Assert.Equal(Enumerable.Range(0, records.Count).Select(order => (long)order), records.Select(record => (long)record["order"]!));
        var seen = Of(records, 1, "forward").Where(record => record["unobserved"] is null)
            .Select(record => $"{record["kind"]} {record["name"]} {record["call"]}");
        string[] chain = ["layer 0", "act 0", "layer 1", "drop 0", "norm 0"];
        Assert.Equal(["input  0", .. chain.SelectMany(place => new[] { $"input {place}", $"activation {place}" }), "activation  0"], seen);
        var phases = records.Where(record => (int)record["step"]! == 1 && record["unobserved"] is null).Select(record => (string)record["phase"]!).Distinct();
        Assert.Equal(["scatter", "forward", "loss", "backward", "step"], phases);
    }

    /// <summary>A record says the file and line that called the layer. Spec: R30.4.</summary>
    [Fact]
    public void Places_are_lines_of_the_caller()
    {
        using var folder = new TraceFolder();
        Train(folder.Path);
        var at = (string?)Of(folder.Read(), 1, "forward").First(record => (string)record["name"]! == "drop")["at"];
        Assert.Contains("TraceRecorderTests.cs:", at, StringComparison.Ordinal);
    }

    /// <summary>A layer that is not called, or run by <c>forward</c>, and a gradient that is None, are in the trace. Spec: R30.5.</summary>
    [Fact]
    public void What_is_not_observed_is_said()
    {
        using var folder = new TraceFolder();
        Train(folder.Path, activation_gradients: true);
        var records = folder.Read();
        var unseen = records.Where(record => record["unobserved"] is not null && (string)record["phase"]! == "forward")
            .Select(record => $"{record["step"]} {record["name"]}: {record["unobserved"]}");
        Assert.Equal(Enumerable.Range(0, 3).SelectMany(step => new[] { "passed", "idle" }.Select(name => $"{step} {name}: no call of the layer was seen in this step")), unseen);
        var none = records.Where(record => (string)record["kind"]! == "gradient" && (string)record["name"]! == "idle.weight").ToList();
        Assert.Equal(3, none.Count);
        Assert.All(none, record => Assert.True(record.ContainsKey("value") && record["value"] is null));
        var outputs = Of(records, 0, "backward").Take(6).Select(record => (string)record["name"]!);
        Assert.Equal(["", "norm", "drop", "layer", "act", "layer"], outputs);
    }

    /// <summary>Parameters, buffers, optimizer state, learning rates, random state, configuration. Spec: R30.1.</summary>
    [Fact]
    public void State_is_taken_down()
    {
        using var folder = new TraceFolder();
        Train(folder.Path);
        var records = folder.Read();
        var last = Of(records, 2, "step").ToDictionary(record => $"{record["kind"]} {record["name"]} {record["part"]}");
        Assert.Equal(["exp_avg", "exp_avg_sq", "step"], last.Values.Where(record => (string)record["kind"]! == "optimizer state" && (string)record["name"]! == "layer.bias").Select(record => (string)record["part"]!));
        Assert.Equal(3, (long)last["optimizer state layer.bias step"]["value"]!);
        Assert.Equal(0.05, (double)last["learning rate optimizer0 group0"]["value"]!);
        Assert.Contains("buffer norm.num_batches_tracked ", last.Keys);
        Assert.Contains("random state cpu ", last.Keys);
        var configuration = records.Where(record => (string)record["kind"]! == "configuration")
            .ToDictionary(record => $"{record["name"]} {record["part"]}", record => record["value"]!.ToJsonString());
        Assert.Equal(("\"Linear\"", "true", "true"), (configuration["layer type"], configuration[" training"], configuration["layer.bias requires_grad"]));
        Assert.Equal(("\"Adam\"", "[0.9,0.999]"), (configuration["optimizer0 type"], configuration["optimizer0 group0.betas"]));
        Assert.DoesNotContain(Of(records, 0, "init"), record => (string)record["kind"]! == "optimizer state");
    }

    /// <summary>Nothing hooks a model that is no longer recorded; what runs between steps is not recorded. Spec: R30.4, R30.6.</summary>
    [Fact]
    public void Only_a_step_is_recorded()
    {
        using var scope = NewDisposeScope();
        using var folder = new TraceFolder();
        using var model = new Twice();
        using (var trace = new TraceRecorder(folder.Path, model, every: 2))
        {
            foreach (var step in Enumerable.Range(0, 3))
            {
                model.call(ones(2, 3));
                trace.inputs(ones(2, 3));
                trace.loss(model.call(ones(2, 3)).sum());
                model.call(ones(2, 3));
                trace.step();
            }
        }

        model.call(ones(2, 3));
        var calls = folder.Read().Where(record => (string)record["name"]! == "layer" && (string)record["kind"]! == "activation");
        Assert.Equal([(0, 0), (0, 1), (2, 0), (2, 1)], calls.Select(record => ((int)record["step"]!, (int)record["call"]!)));
        var error = Assert.Throws<ArgumentException>(() => new TraceRecorder(folder.Path, model, every: 0));
        Assert.Equal("trace: expected every of at least 1, got 0", error.Message);
    }

    /// <summary>A recorded trainer leaves the same bits, and every replica has all phases. Spec: R30.5, R30.6.</summary>
    [Fact]
    public void A_trainer_is_observed_without_a_change()
    {
        using var folder = new TraceFolder();
        var plain = Run(null);
        Assert.Equal(plain, Run(folder.Path));
        var phases = folder.Read().Where(record => (int)record["step"]! == 1 && record["unobserved"] is null)
            .Select(record => $"{record["phase"]} {record["replica"]}").Distinct();
        Assert.Equal(
            ["scatter 0", "scatter 1", "forward 0", "forward 1", "loss 0", "loss 1", "backward 0", "backward 1", "reduce 0", "clip 0", "step 0", "resync 1"],
            phases);
    }

    /// <summary>The trace of a step that failed has the message. Spec: R30.5.</summary>
    [Fact]
    public void A_step_that_fails_is_taken_down()
    {
        using var folder = new TraceFolder();
        Assert.ThrowsAny<Exception>(() => Run(folder.Path, fail: true));
        var last = folder.Read()[^1];
        Assert.Equal("failure", (string?)last["kind"]);
        Assert.Contains("no loss today", (string?)last["value"], StringComparison.Ordinal);
    }

    /// <summary>A copy of a model that is being recorded trains, and only the model is observed. Spec: R30.4.</summary>
    [Fact]
    public void A_copy_is_not_recorded()
    {
        using var scope = NewDisposeScope();
        using var folder = new TraceFolder();
        using var model = new Twice();
        using (var trace = bridge.trace(folder.Path, model))
        {
            using var copy = (Twice)bridge.replicate(model, [CPU, CPU])[1];
            trace.inputs(ones(2, 3));
            copy.call(ones(2, 3));
            trace.loss(model.call(ones(2, 3)).sum());
        }

        Assert.Equal(2, folder.Read().Count(record => (string)record["name"]! == "layer" && (string)record["kind"]! == "activation"));
    }

    /// <summary>A model in mixed precision is recorded, with the layers' own inputs and rounded outputs. Spec: R30.4, R18.5.</summary>
    [Fact]
    public void Mixed_precision_is_recorded()
    {
        using var scope = NewDisposeScope();
        using var folder = new TraceFolder();
        using var model = nn.Sequential(("fc", nn.Linear(3, 3)));
        bridge.mixed_precision(model);
        using (var trace = bridge.trace(folder.Path, model))
        {
            trace.inputs(ones(2, 3));
            trace.loss(model.call(ones(2, 3)).sum());
        }

        var shapes = folder.Read().Where(record => (string)record["name"]! == "fc" && (string)record["phase"]! == "forward").Select(record => record["shape"]!.ToJsonString());
        Assert.Equal(["[2,3]", "[2,3]"], shapes);
    }

    private static IEnumerable<JsonObject> Of(IEnumerable<JsonObject> records, int step, string phase)
        => records.Where(record => (int)record["step"]! == step && (string)record["phase"]! == phase);

    /// <summary>Train in a loop of its own, recorded if there is a path; return the digests of all there is.</summary>
    private static List<string> Train(string? path, bool activation_gradients = false)
    {
        using var scope = NewDisposeScope();
        random.manual_seed(7);
        using var model = new Twice();
        using var optimizer = new Adam(model.parameters().Cast<Parameter>(), 0.05);
        using var trace = path is null ? null : new TraceRecorder(path, model, optimizer, full: "*", activation_gradients: activation_gradients);
        for (var step = 0; step < 3; step++)
        {
            var (inputs, targets) = (randn(4, 3), tensor(new long[] { 0, 1, 2, 0 }));
            trace?.inputs(inputs, targets);
            var loss = functional.cross_entropy(model.call(inputs), targets);
            trace?.loss(loss);
            optimizer.zero_grad();
            loss.backward();
            trace?.gradients();
            optimizer.step();
            trace?.step();
        }

        var states = Trace.TrainingState.OptimizerState(optimizer, model).Select(named => named.Value).OfType<Tensor>();
        var gradients = model.parameters().Select(parameter => parameter.grad).OfType<Tensor>();
        return [.. StateDict.Of(model).Values.Concat(states).Concat(gradients).Append(random.get_rng_state()).Select(tensor => Keeper.Observe(tensor, false, out _).digest)];
    }

    /// <summary>Take three steps of a trainer of a model that draws, recorded if there is a path.</summary>
    private static List<string> Run(string? path, bool fail = false)
    {
        using var scope = NewDisposeScope();
        random.manual_seed(3);
        using var model = nn.Sequential(("fc1", nn.Linear(3, 3)), ("drop", nn.Dropout(0.5)), ("fc2", nn.Linear(3, 3)));
        using var trainer = new Trainer(
            model,
            parameters => new BridgeSharp.Optim.SGD(parameters, 0.1, 0.9),
            (outputs, targets) => fail ? throw new ArithmeticException("no loss today") : (functional.cross_entropy((Tensor)outputs, (Tensor)targets), 1),
            [CPU, CPU],
            new TrainerOptions { clip_norm = 0.1 });
        using var trace = path is null ? null : bridge.trace(path, trainer);
        for (var step = 0; step < 3; step++)
        {
            trainer.step(randn(5, 3), tensor(new long[] { 0, 1, 2, 0, 1 }));
        }

        return [.. trainer.state_dict().Values.Append(random.get_rng_state()).Select(tensor => Keeper.Observe(tensor, false, out _).digest)];
    }

    /// <summary>Calls one layer twice, draws, runs one by <c>forward</c>, and has a layer that it never calls.</summary>
    private sealed class Twice : nn.Module<Tensor, Tensor>
    {
        private readonly Linear layer = nn.Linear(3, 3);
        private readonly ReLU act = nn.ReLU(inplace: true);
        private readonly Dropout drop = nn.Dropout(0.5);
        private readonly BatchNorm1d norm = nn.BatchNorm1d(3);
        private readonly Linear passed = nn.Linear(3, 3);

        public Twice()
            : base(nameof(Twice))
        {
            RegisterComponents();
            register_module("idle", nn.Linear(3, 3));
        }

        public override Tensor forward(Tensor input) => norm.call(drop.call(layer.call(act.call(layer.call(passed.forward(input))))));
    }
}
