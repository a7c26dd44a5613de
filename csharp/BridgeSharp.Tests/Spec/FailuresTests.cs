using System.Runtime.CompilerServices;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Tests.Spec;

/// <summary>Steps that fail: everything is as before, and the next step works.</summary>
[Collection(nameof(Serial))]
public sealed class FailuresTests : IDisposable
{
    private static readonly string[] Stages = ["forward", "loss", "backward", "average", "clip", "optimizer", "resync", "scheduler"];
    private static readonly Dictionary<string, string> Texts = new()
    {
        ["forward"] = "TimeoutException: forward",
        ["loss"] = "TimeoutException: loss",
        ["backward"] = "does not require grad",
        ["average"] = "average: expected replica 2 to have parameters",
        ["clip"] = "clamp is not supported for complex types",
        ["optimizer"] = "optimizer",
        ["resync"] = "size mismatch for calls",
        ["scheduler"] = "scheduler",
    };

    private static string broken = "";

    private readonly Tensor stream = random.get_rng_state();

    /// <summary>Where a step breaks, with how many replicas, in which mode, with statistics of a replica or of all.</summary>
    public static TheoryData<string, int, string, bool> Ways
    {
        get
        {
            var ways = new TheoryData<string, int, string, bool>();
            foreach (var stage in Stages)
            {
                foreach (var replicas in stage is "average" or "resync" ? new[] { 3 } : [1, 3])
                {
                    ways.Add(stage, replicas, "master", false);
                    ways.Add(stage, replicas, "all", false);
                    ways.Add(stage, replicas, "master", true);
                }
            }

            return ways;
        }
    }

    /// <summary>Leave the default generator as it was.</summary>
    public void Dispose()
    {
        broken = "";
        random.set_rng_state(stream);
        stream.Dispose();
    }

    /// <summary>Then the next steps are those of a run that never failed. Spec: R21.1, R21.2.</summary>
    [Theory]
    [MemberData(nameof(Ways))]
    public void Everything_is_as_before(string stage, int replicas, string mode, bool synchronized)
    {
        using var scope = NewDisposeScope();
        List<string> states = [];
        foreach (var failing in new[] { false, true })
        {
            using var trainer = Made(replicas, mode, synchronized);
            Step(trainer, 9, 1);
            for (var i = 0; failing && i < 2; i++)
            {
                var before = Everything(trainer);
                broken = stage;
                var error = Assert.ThrowsAny<Exception>(() => Step(trainer, 9, 2, 0, 4, 8));
                broken = "";
                Assert.Contains(Texts[stage], error.Message, StringComparison.Ordinal);
                ((Breaking)trainer.replicas[^1]).Mend();
                Assert.Equal(before, Everything(trainer));
            }

            Step(trainer, 9, 3);
            Step(trainer, 6, 4);
            states.Add(Everything(trainer));
        }

        Assert.Equal(states[0], states[1]);
    }

    /// <summary>The state and rates of optimizers too, TorchSharp's and BridgeSharp's, where a scheduler of the user's fails. Spec: R21.1, R21.2.</summary>
    [Theory]
    [InlineData("SGD")]
    [InlineData("Adam")]
    [InlineData("AdamW")]
    [InlineData("RMSProp")]
    [InlineData("BridgeSharp's RAdam")]
    public void Optimizers_are_given_back(string name)
    {
        using var scope = NewDisposeScope();
        List<Tensor> weights = [];
        foreach (var failing in new[] { false, true })
        {
            random.manual_seed(1);
            var model = nn.Linear(3, 2);
            optim.Optimizer optimizer = name switch
            {
                "SGD" => optim.SGD(model.parameters(), 0.1, 0.9),
                "Adam" => optim.Adam(model.parameters(), 0.1),
                "AdamW" => optim.AdamW(model.parameters(), 0.1),
                "BridgeSharp's RAdam" => new Optim.RAdam(model.parameters(), 0.1),
                _ => optim.RMSProp(model.parameters(), 0.1, momentum: 0.5),
            };
            using var trainer = new Trainer(
                model, optimizer, (outputs, targets) => mse_loss(outputs, targets), TrainerTests.Cpus(2), new TrainerOptions { scheduler = Rate });
            Step(trainer, 4, 1);
            broken = failing ? "scheduler" : "";
            for (var i = 0; failing && i < 2; i++)
            {
                Assert.Throws<TimeoutException>(() => Step(trainer, 4, 2));
                Assert.Equal(1, trainer.updates);
            }

            broken = "";
            Step(trainer, 4, 3);
            Step(trainer, 4, 4);
            weights.Add(model.weight.detach().clone());
        }

        Same.Trees(weights[0], weights[1]);
    }

    /// <summary>OneCycleLR refuses to go on after its last step, which changes nothing. Spec: R21.2.</summary>
    [Fact]
    public void A_scheduler_that_is_through_is_undone()
    {
        using var scope = NewDisposeScope();
        var model = nn.Linear(3, 2);
        using var trainer = new Trainer(
            model,
            new Optim.SGD(model.parameters(), lr: 0.1),
            (outputs, targets) => mse_loss(outputs, targets),
            options: new TrainerOptions { scheduler = optimizer => optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps: 3) });
        var before = model.weight.detach().clone();
        Assert.ThrowsAny<Exception>(() =>
        {
            for (var i = 0; i < 5; i++)
            {
                before = model.weight.detach().clone();
                Step(trainer, 4, i);
            }
        });
        Same.Trees(before, model.weight.detach());
    }

    /// <summary>A batch that fails is not added, and a flush that fails can be repeated. Spec: R21.1.</summary>
    [Fact]
    public void Accumulated_gradients_are_given_back()
    {
        using var scope = NewDisposeScope();
        List<string> states = [];
        foreach (var failing in new[] { false, true })
        {
            using var trainer = Made(2, "master", synchronized: false, accumulate: 3);
            Step(trainer, 6, 1);
            foreach (var (stage, act) in new (string, Action)[] { ("forward", () => Step(trainer, 6, 2, 5)), ("optimizer", () => trainer.flush()) })
            {
                if (failing)
                {
                    var before = Everything(trainer);
                    broken = stage;
                    Assert.ThrowsAny<Exception>(act);
                    broken = "";
                    Assert.Equal(before, Everything(trainer));
                }
            }

            Step(trainer, 4, 3);
            Assert.True(trainer.flush());
            states.Add(Everything(trainer));
        }

        Assert.Equal(states[0], states[1]);
    }

    /// <summary>With its index, device, error and stack. Spec: R3.3, R21.2.</summary>
    [Theory]
    [InlineData("forward")]
    [InlineData("loss")]
    public void Every_failing_replica_is_named(string stage)
    {
        using var scope = NewDisposeScope();
        using var trainer = Made(3, "master", synchronized: false);
        Step(trainer, 9, 1);
        broken = stage;
        var error = Assert.Throws<ReplicaException>(() => Step(trainer, 9, 2, 0, 8));
        Assert.Equal([0, 2], error.Failures.Select(failure => failure.Replica));
        Assert.Contains("in replica 2 on device cpu: TimeoutException", error.Message, StringComparison.Ordinal);
        Assert.Contains(nameof(Pull), error.Message, StringComparison.Ordinal);
    }

    /// <summary>One backward runs over the losses of synchronized replicas. Spec: R3.3, R21.2, R22.1.</summary>
    [Fact]
    public void A_joint_backward_names_the_replicas_that_took_part()
    {
        using var scope = NewDisposeScope();
        using var trainer = Made(3, "master", synchronized: true);
        Step(trainer, 9, 1);
        var before = Everything(trainer);
        broken = "backward";
        var error = Assert.Throws<ReplicaException>(() => Step(trainer, 9, 2, 0, 4, 8));
        broken = "";
        Assert.Equal([0, 1, 2], error.Failures.Select(failure => failure.Replica));
        const string Head = "backward: replicas 0, 1, 2 failed together, as one backward runs over their losses: ExternalException";
        Assert.StartsWith(Head, error.Message, StringComparison.Ordinal);
        Assert.Equal(before, Everything(trainer));
    }

    /// <summary>The index is that of the replica, not that among those which count. Spec: R3.3, R8.6.</summary>
    [Fact]
    public void A_backward_is_named_by_its_replica_where_others_count_nothing()
    {
        using var scope = NewDisposeScope();
        var model = nn.Linear(1, 1);
        using var trainer = new Trainer(
            model,
            parameters => new Optim.SGD(parameters),
            (outputs, targets) => (((Tensor)outputs).sum().detach(), ((Tensor)targets).sum().item<float>()),
            TrainerTests.Cpus(2),
            new TrainerOptions { reduction = "count" });
        var error = Assert.Throws<ReplicaException>(() => trainer.step(ones(2, 1), tensor(new[] { 0f, 1f })));
        Assert.Equal(1, Assert.Single(error.Failures).Replica);
        Assert.Contains("does not require grad", error.Message, StringComparison.Ordinal);
    }

    /// <summary>Steps that fail leave no tensor behind, nor do steps of any mode. Spec: R21.1, R7.3.</summary>
    [Theory]
    [InlineData("master", false, 1)]
    [InlineData("all", false, 1)]
    [InlineData("master", true, 1)]
    [InlineData("all", true, 3)]
    public void Nothing_is_left(string mode, bool synchronized, int accumulate)
    {
        using var scope = NewDisposeScope();
        using var trainer = Made(3, mode, synchronized, accumulate, plain: true);
        for (var i = 0; i < 3; i++)
        {
            Step(trainer, 9, 1);
        }

        var before = Same.Live();
        for (var i = 0; i < 100; i++)
        {
            if (i % 3 == 2)
            {
                broken = Stages[i % 2];
                Assert.ThrowsAny<Exception>(() => Step(trainer, 9, 2, 1, 5));
                broken = "";
            }

            Step(trainer, 9, 1);
        }

        for (var i = 0; i < 2 * (accumulate - 1); i++)
        {
            Step(trainer, 9, 1);
        }

        trainer.flush();
        Step(trainer, 9, 1);
        trainer.flush();
        Assert.InRange(Same.Live(), 0, before);
    }


    // A stack has no frame of what was inlined.
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Pull(string stage)
    {
        if (broken == stage)
        {
            throw new TimeoutException(stage);
        }
    }

    private static optim.lr_scheduler.LRScheduler Rate(optim.Optimizer optimizer) => optim.lr_scheduler.LambdaLR(optimizer, update =>
    {
        Pull("scheduler");
        return Math.Pow(0.5, update);
    });

    private static Trainer Made(int replicas, string mode, bool synchronized, int accumulate = 1, bool plain = false)
    {
        random.manual_seed(4);
        nn.Module<Tensor, Tensor> norm = synchronized ? new SyncBatchNorm(4) : nn.BatchNorm1d(4);
        var model = new Breaking(nn.Sequential(nn.Linear(3, 4), norm, nn.Dropout(0.25), nn.Linear(4, 2)));
        var trainer = new Trainer(
            model,
            parameters => plain ? new Optim.Adam(parameters.Where(parameter => !is_complex(parameter))) : new HalfWay(parameters),
            Loss,
            TrainerTests.Cpus(replicas),
            new TrainerOptions { mode = mode, accumulate = accumulate, clip_norm = 1, clip_value = 1, scheduler = plain ? null : Rate });
        ((Breaking)trainer.replicas[^1]).IsLast = true;
        return trainer;

        static (Tensor, double) Loss(object outputs, object targets)
        {
            var (actual, expected) = ((Tensor)outputs, (Tensor)targets);
            var marked = expected.max().item<float>() > 100;
            if (marked)
            {
                Pull("loss");
            }

            var loss = mse_loss(actual, expected.clamp(max: 100));
            return (marked && broken == "backward" ? loss.detach() : loss, 1);
        }
    }

    /// <summary>Train on a batch of its own, whose marked samples break a stage.</summary>
    private static void Step(Trainer trainer, long size, int seed, params long[] marked)
    {
        using var scope = NewDisposeScope();
        using var generator = new Generator((ulong)seed);
        var (inputs, targets) = (randn(size, 3, generator: generator), randn(size, 2, generator: generator));
        foreach (var index in marked)
        {
            inputs[index, 0] = 1000;
            targets[index, 0] = 1000;
        }

        trainer.step(inputs, targets);
    }

    /// <summary>Write down all that a failing step must leave as it was.</summary>
    private static string Everything(Trainer trainer)
    {
        using var scope = NewDisposeScope();
        var tensors = trainer.replicas.SelectMany(replica => StateDict.Of(replica).Values.Concat(replica.parameters().Select(parameter => parameter.grad)))
            .Append(random.get_rng_state()).Concat(trainer.optimizers.OfType<HalfWay>().SelectMany(own => own.History));
        var bits = tensors.Select(tensor => tensor is null ? "None" : Convert.ToHexString(Same.Bits(tensor)));
        var rates = trainer.optimizers.SelectMany(own => own.ParamGroups).Select(group => $"{group.LearningRate:R}");
        var counts = trainer.optimizers.OfType<HalfWay>().Select(own => $"{own.Count}");
        return string.Join('\n', [.. bits, .. rates, .. counts, $"{trainer.updates}"]);
    }

    /// <summary>Breaks a stage where the input is marked; counts its calls in a buffer that it puts anew.</summary>
    private sealed class Breaking : nn.Module<Tensor, Tensor>
    {
        private readonly Sequential inner;
        private readonly Parameter complex = new(ones(1, dtype: complex64));
        private Tensor calls = tensor(0L);

        public Breaking(Sequential inner)
            : base(nameof(Breaking))
        {
            this.inner = inner;
            RegisterComponents();
        }

        public bool IsLast { get; set; }

        public override Tensor forward(Tensor input)
        {
            var outputs = inner.call(input.clamp(max: 100));
            var marked = input.max().item<float>() > 100;
            Count(marked && IsLast && broken == "resync" ? calls.expand(2) : calls);
            if (marked)
            {
                Pull("forward");
            }

            if (marked && IsLast && broken == "average")
            {
                var extra = new Parameter(ones(1));
                extra.DetachFromDisposeScope();
                register_parameter(nameof(extra), extra);
            }

            return marked && broken == "clip" ? outputs + complex.real : outputs;
        }

        /// <summary>Take back the parameter that made the replicas differ.</summary>
        public void Mend()
        {
            if (has_parameter("extra"))
            {
                _internal_params.Remove("extra");
            }
        }

        private void Count(Tensor before)
        {
            calls = (before + 1).DetachFromDisposeScope();
            ConditionallyRegisterBuffer(nameof(calls), calls);
        }
    }

    /// <summary>An optimizer of the user's, with state of its own, that breaks between two parameters.</summary>
    private sealed class HalfWay : TorchSharp.Modules.SGD
    {
        public HalfWay(IEnumerable<Parameter> parameters)
            : base(parameters, 0.1)
        {
        }

        public List<Tensor> History { get; } = [];

        public long Count { get; private set; }

        public override Tensor step(Func<Tensor>? closure = null)
        {
            using var mode = no_grad();
            Count++;
            foreach (var (number, parameter) in parameters().Index())
            {
                if (number == 2)
                {
                    Pull("optimizer");
                }

                if (parameter.grad is { } gradient)
                {
                    History.Add(gradient.clone().DetachFromDisposeScope());
                    parameter.add_(gradient, alpha: -ParamGroups.Single().LearningRate);
                }
            }

            return zeros(1);
        }
    }
}
