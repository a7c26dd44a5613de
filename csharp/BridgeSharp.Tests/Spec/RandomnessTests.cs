using BridgeSharp.Parallel;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Tests.Spec;

/// <summary>Models that draw random numbers.</summary>
[Collection(nameof(Serial))]
public sealed class RandomnessTests : IDisposable
{
    private readonly Tensor stream = random.get_rng_state();

    public static TheoryData<string> Cases => Vectors.Names("draws");

    /// <summary>Leave the default generator as it was.</summary>
    public void Dispose()
    {
        random.set_rng_state(stream);
        stream.Dispose();
    }

    /// <summary>Each replica draws what the vectors say: the same in Python. Spec: R20.1, R20.2, R20.3.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("draws", name);
        random.manual_seed(entry.GetProperty("seed").GetInt64());
        var model = new Drawing(entry.GetProperty("kind").GetString()!, entry.GetProperty("from").GetInt64());
        using var trainer = Made(model, entry.GetProperty("replicas").GetInt32());
        foreach (var (size, expected) in entry.Items("sizes").Zip(entry.Items("drawn")))
        {
            trainer.step(ones(size.GetInt64(), 3, dtype: float64), ones(size.GetInt64()));
            var actual = trainer.replicas.Cast<Drawing>().Take(expected.GetArrayLength()).Select(replica => replica.Outputs[^1]).ToList();
            Assert.Equal(expected.EnumerateArray().Select(drawn => Convert.ToHexString(Same.Bits(Vectors.Tensor(drawn)))), actual);
        }
    }

    /// <summary>The same seed leaves the same bits, and no two replicas draw alike. Spec: R20.2.</summary>
    [Fact]
    public void A_run_is_reproducible_and_replicas_differ()
    {
        using var scope = NewDisposeScope();
        var results = Enumerable.Range(0, 2).Select(_ =>
        {
            random.manual_seed(5);
            using var trainer = Made(new Drawing("rand"), 3);
            for (var i = 0; i < 3; i++)
            {
                trainer.step(ones(3, 3, dtype: float64), ones(3));
            }

            return trainer.replicas.Cast<Drawing>().SelectMany(replica => replica.Outputs).ToList();
        }).ToList();

        Assert.Equal(results[0], results[1]);
        Assert.Equal(9, results[0].Distinct().Count());
    }

    /// <summary>What the caller draws afterwards depends on replica 0 alone. Spec: R20.1.</summary>
    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(4)]
    public void The_stream_of_the_caller_moves_as_in_a_single_run(int replicas)
    {
        using var scope = NewDisposeScope();
        random.manual_seed(5);
        using var trainer = Made(new Drawing("dropout"), replicas);
        for (var i = 0; i < 3; i++)
        {
            trainer.step(ones(replicas, 3, dtype: float64), ones(replicas));
        }

        var after = rand(4);
        random.manual_seed(5);
        for (var i = 0; i < 3; i++)
        {
            dropout(ones(1, 3, dtype: float64), 0.5, training: true);
        }

        Same.Trees(rand(4), after);
    }

    /// <summary>Forwards run twice in that step only, and count once. Spec: R20.3, R21.1.</summary>
    [Fact]
    public void A_late_draw_is_undone_and_done_again()
    {
        using var scope = NewDisposeScope();
        using var trainer = Made(new Drawing("rand", 2), 2);
        List<int> calls = [];
        for (var i = 0; i < 5; i++)
        {
            trainer.step(ones(2, 3, dtype: float64), ones(2));
            calls.Add(((Drawing)trainer.replicas[1]).Outputs.Count);
        }

        Assert.Equal([1, 2, 4, 5, 6], calls);
        Assert.All(trainer.replicas, replica => Assert.Equal(5, replica.buffers().Single().item<long>()));
    }

    /// <summary>It runs in turn at first, and again after a late draw: every run is the same. Spec: R20.3.</summary>
    [Fact]
    public void Data_parallel_finds_out_that_its_module_draws()
    {
        using var scope = NewDisposeScope();
        var runs = Enumerable.Range(0, 2).Select(_ =>
        {
            random.manual_seed(5);
            using var net = new DataParallel<Tensor, Tensor>(new Drawing("rand", 2), TrainerTests.Cpus(4));
            var outputs = Enumerable.Range(0, 4).Select(_ => net.call(ones(4000, 3, dtype: float64)).detach()).ToList();
            Assert.Equal(4, net.module.buffers().Single().item<long>());
            return outputs;
        }).ToList();
        Same.Trees(runs[0], runs[1]);
        Assert.Equal(4, runs[0][3].chunk(4).Select(shard => Convert.ToHexString(Same.Bits(shard))).Distinct().Count());
    }

    /// <summary>Whatever draws in a step, every replica draws on its own stream. Spec: R20.1, R20.2.</summary>
    [Fact]
    public void A_draw_in_the_loss_or_backward_counts_too()
    {
        using var scope = NewDisposeScope();
        var before = get_num_threads();
        var gradients = new[] { 1, 2 }.Select(threads =>
        {
            set_num_threads(threads);
            random.manual_seed(1);
            var model = nn.Linear(3, 2).to(float64);
            using var trainer = new Trainer(
                model,
                new Optim.SGD(model.parameters(), lr: 0),
                (outputs, _) => (Noisy.apply(outputs) * rand_like(outputs)).sum(),
                TrainerTests.Cpus(3));
            var each = new List<Tensor>();
            for (var i = 0; i < 3; i++)
            {
                trainer.step(ones(6, 3, dtype: float64), ones(6));
                each.AddRange(model.parameters().Select(parameter => parameter.grad!.clone()));
            }

            return each;
        }).ToList();
        set_num_threads(before);

        Same.Trees(gradients[0], gradients[1]);
        Assert.NotEqual(Same.Bits(gradients[0][0]), Same.Bits(gradients[0][2]));
    }

    /// <summary>Dropout between synchronized layers is reproducible, with any threads. Spec: R20.2, R22.3.</summary>
    [Theory]
    [InlineData(1, 1)]
    [InlineData(2, 1)]
    [InlineData(3, 2)]
    [InlineData(4, 2)]
    public void Draws_and_synchronization_together(int replicas, int threads)
    {
        using var scope = NewDisposeScope();
        var before = get_num_threads();
        set_num_threads(threads);
        var results = Enumerable.Range(0, 2).Select(_ =>
        {
            random.manual_seed(5);
            var model = nn.Sequential(nn.Linear(3, 4), new SyncBatchNorm(4), nn.Dropout(0.5), nn.Linear(4, 4), new SyncBatchNorm(4)).to(float64);
            using var trainer = new Trainer(
                model, new Optim.SGD(model.parameters(), lr: 0.1), (outputs, targets) => mse_loss(outputs, targets), TrainerTests.Cpus(replicas));
            foreach (var size in new[] { 9, 4, 8 })
            {
                trainer.step(randn(size, 3, dtype: float64), randn(size, 4, dtype: float64));
            }

            return StateDict.Of(model).Values.Select(value => value.clone()).ToList();
        }).ToList();
        set_num_threads(before);

        Same.Trees(results[0], results[1]);
    }

    /// <summary>In its present mode; a module of the user's says so. Spec: R20.3.</summary>
    [Fact]
    public void What_draws_is_known_by_its_layers()
    {
        using var scope = NewDisposeScope();
        nn.Module[] drawing =
        [
            nn.Dropout(0.5), nn.Dropout1d(0.1), nn.Dropout2d(0.1), nn.Dropout3d(0.1), nn.AlphaDropout(0.1), nn.FeatureAlphaDropout(0.1), nn.RReLU(),
            nn.RNN(2, 2, 2, dropout: 0.1), nn.LSTM(3, 2, 2, dropout: 0.1), nn.GRU(3, 2, 2, dropout: 0.1).to(float64),
            nn.MultiheadAttention(2, 1, 0.1), nn.MultiheadAttention(4, 2, 0.1, kdim: 3, vdim: 3), nn.Transformer(2, 1, 1, 1, 2),
            nn.TransformerEncoderLayer(2, 1, 2), nn.TransformerEncoder(nn.TransformerEncoderLayer(2, 1, 2), 1),
            nn.TransformerDecoderLayer(2, 1, 2), nn.TransformerDecoder(nn.TransformerDecoderLayer(2, 1, 2), 1),
        ];
        Assert.All(drawing, module => Assert.True(RandomStates.draws(new Around(module)), module.GetName()));
        Array.ForEach(drawing, module => module.eval());
        Assert.All(drawing, module => Assert.False(RandomStates.draws(module)));
        var pooling = nn.FractionalMaxPool2d(2, output_size: 1);
        pooling.eval();
        Assert.True(RandomStates.draws(pooling));
        nn.Module[] others =
        [
            nn.Linear(1, 1), nn.Dropout(0), nn.LSTM(3, 2, 2), nn.GRUCell(1, 1), nn.Embedding(3, 2, max_norm: 1), nn.MultiheadAttention(2, 1),
            nn.Transformer(2, 1, 1, 1, 2, dropout: 0), nn.TransformerEncoder(nn.TransformerEncoderLayer(2, 1, 2), 0),
        ];
        Assert.All(others, module => Assert.False(RandomStates.draws(module), module.GetName()));
        Assert.True(RandomStates.draws(nn.Sequential(new Saying())));
    }

    /// <summary>Asking a layer of libtorch draws nothing, changes nothing and leaves nothing behind. Spec: R20.3.</summary>
    [Fact]
    public void Asking_leaves_the_layer_alone()
    {
        using var model = nn.LSTM(3, 4, 2, dropout: 0.5);
        using var other = nn.Transformer(2, 1, 1, 1, 2);
        using var before = random.get_rng_state();
        Assert.True(RandomStates.draws(other));
        var live = Same.Live();
        Assert.True(RandomStates.draws(model));
        Assert.Equal(live, Same.Live());
        using var after = random.get_rng_state();
        Same.Trees(before, after);
        Assert.All(model.parameters(), parameter => Assert.Null(parameter.grad));
    }

    /// <summary>A recurrent layer with dropout, which no attribute tells, draws the same in every run. Spec: R20.2, R25.2.</summary>
    [Fact]
    public void Recurrent_dropout_is_reproducible_under_data_parallel()
    {
        using var scope = NewDisposeScope();
        var outputs = Enumerable.Range(0, 2).Select(_ =>
        {
            random.manual_seed(5);
            using var net = new DataParallel<Tensor, Tensor>(new Recurrent(), TrainerTests.Cpus(4));
            return Enumerable.Range(0, 5).Select(_ => net.call(ones(8, 3, 4))).ToList();
        }).ToList();

        Same.Trees(outputs[0], outputs[1]);
        Assert.NotEqual(Same.Bits(outputs[0][0][..2]), Same.Bits(outputs[0][0][2..4]));
    }

    /// <summary>Without a trainer the streams can be kept by hand. Spec: R20.1.</summary>
    [Fact]
    public void Parallel_apply_takes_states()
    {
        using var scope = NewDisposeScope();
        random.manual_seed(9);
        using var states = new RandomStates([CPU, CPU]);
        Func<int, float> draw = _ => rand(1).item<float>();
        var drawn = Enumerable.Range(0, 2).SelectMany(_ => bridge.parallel_apply([draw, draw], [0, 0], states: states)).ToList();

        random.manual_seed(9);
        Assert.Equal([draw(0), draw(0)], [drawn[0], drawn[2]]);
        random.manual_seed(10);
        Assert.Equal([draw(0), draw(0)], [drawn[1], drawn[3]]);
    }

    private static Trainer Made(nn.Module model, int replicas)
        => new(model, new Optim.SGD(model.parameters(), lr: 0), (outputs, _) => outputs.sum(), TrainerTests.Cpus(replicas));

    /// <summary>Multiplies by a parameter of ones, and from a step on drops half or adds noise.</summary>
    private sealed class Drawing : nn.Module<Tensor, Tensor>
    {
        private readonly Parameter weight = new(ones(3, dtype: float64));
        private readonly string kind;
        private readonly long first;

        public Drawing(string kind, long first = 0)
            : base(nameof(Drawing))
        {
            (this.kind, this.first) = (kind, first);
            RegisterComponents();
            register_buffer("steps", tensor(0L));
        }

        public List<string> Outputs { get; } = [];

        public override Tensor forward(Tensor input)
        {
            var outputs = input * weight;
            var steps = buffers().Single();
            if (steps.item<long>() >= first)
            {
                outputs = kind == "rand" ? outputs + rand_like(outputs) : dropout(outputs, 0.5, training: true);
            }

            steps.add_(1);
            Outputs.Add(Convert.ToHexString(Same.Bits(outputs)));
            return outputs;
        }
    }

    /// <summary>Passes values on, and draws in its backward.</summary>
#pragma warning disable CA1812 // TorchSharp makes it.
    private sealed class Noisy : autograd.SingleTensorFunction<Noisy>
#pragma warning restore CA1812
    {
        public override string Name => nameof(Noisy);

        public override Tensor forward(autograd.AutogradContext ctx, params object[] vars) => ((Tensor)vars[0]).clone();

        public override List<Tensor> backward(autograd.AutogradContext ctx, Tensor grad_output) => [grad_output * rand_like(grad_output)];
    }

    /// <summary>Has a layer of any kind.</summary>
    private sealed class Around : nn.Module
    {
        public Around(nn.Module layer)
            : base(nameof(Around)) => register_module("layer", layer);
    }

    /// <summary>A recurrent layer of libtorch's alone.</summary>
    private sealed class Recurrent : nn.Module<Tensor, Tensor>
    {
        private readonly LSTM layer = nn.LSTM(4, 5, 2, batchFirst: true, dropout: 0.5);

        public Recurrent()
            : base(nameof(Recurrent)) => RegisterComponents();

        public override Tensor forward(Tensor input) => layer.call(input).Item1;
    }

    /// <summary>Says that it draws.</summary>
    private sealed class Saying() : nn.Module<Tensor, Tensor>(nameof(Saying)), IDraws
    {
        public bool draws => true;

        public override Tensor forward(Tensor input) => input + rand_like(input);
    }
}
