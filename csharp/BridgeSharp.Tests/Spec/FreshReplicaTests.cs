using TorchSharp;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Making replicas by a factory.</summary>
[Collection(nameof(Serial))]
public sealed class FreshReplicaTests : IDisposable
{
    private readonly DisposeScope scope = NewDisposeScope();

    /// <summary>A factory's model takes state, buffers that are not persistent included, and flags, and draws nothing. Spec: R4.9, R4.10.</summary>
    [Fact]
    public void State_and_flags_are_taken()
    {
        using var model = new Tied();
        model.Scratch.fill_(5);
        model.First.bias!.requires_grad_(false);
        model.Norm.eval();
        var random = get_rng_state();

        var replicas = replicate(model, [CPU, CPU, CPU], () => new Tied());

        Same.Trees(random, get_rng_state());
        Assert.Same(model, replicas[0]);
        Assert.Equal(3, replicas.Distinct().Count());
        foreach (var copy in replicas.Skip(1))
        {
            Same.Trees(StateDict.Of(model).Values.ToList(), StateDict.Of(copy).Values.ToList());
            Same.Trees(model.Scratch, copy.Scratch);
            Assert.Equal((false, true), (copy.First.bias!.requires_grad, copy.Second.bias!.requires_grad));
            Assert.Equal((true, true, false), (copy.training, copy.First.training, copy.Norm.training));
        }
    }

    /// <summary>A factory makes replicas of what cannot be copied. Spec: R4.8, R4.9.</summary>
    [Fact]
    public void What_cannot_be_copied_is_made()
    {
        using var model = new Holder((nint)1);

        var copy = replicate(model, [CPU, CPU], () => new Holder((nint)1))[1];

        Same.Trees(model.Layer.weight, copy.Layer.weight);
        Assert.NotSame(model.Layer, copy.Layer);
    }

    /// <summary>What cannot be copied trains as one model does. Spec: R4.9, R8.1, R25.1.</summary>
    [Fact]
    public void Trainer_and_data_parallel_take_a_factory()
    {
        random.manual_seed(2);
        var inputs = randn(5, 2, dtype: float64);
        var model = Made();
        var plain = replicate(model.Layer, [CPU, CPU])[1];
        Device[] devices = [CPU, CPU, CPU];

        plain.call(inputs).square().mean().backward();
        using var net = new DataParallel<Tensor, Tensor>(model, devices, factory: Made);
        net.call(inputs).square().mean().backward();
        AssertClose(model, parameter => parameter.grad!);

        using var trainer = new Trainer(
            model,
            new Optim.SGD(model.parameters(), lr: 0.5),
            (outputs, targets) => nn.functional.mse_loss(outputs, targets),
            devices,
            new TrainerOptions { factory = Made });
        trainer.step(inputs, zeros_like(inputs));
        new Optim.SGD(plain.parameters(), lr: 0.5).step();
        Assert.All(trainer.replicas, replica => AssertClose(replica, parameter => parameter.detach()));

        static Holder Made() => new Holder((nint)1).to(float64);

        void AssertClose(nn.Module own, Func<Tensor, Tensor> value)
            => Assert.All(own.parameters().Zip(plain.parameters()), pair => Same.Within(value(pair.Second), value(pair.First), 1e-12));
    }

    /// <summary>Containers of TorchSharp's, and what is in them, take the state too. Spec: R4.9.</summary>
    [Fact]
    public void Nested_models_take_the_state()
    {
        var model = Made();
        model.call(ones(2, 2));
        model[1].call(ones(2, 2));
        ((nn.Module)model[1]).eval();

        var copy = replicate(model, [CPU, CPU], Made)[1];

        Same.Trees(StateDict.Of(model).Values.ToList(), StateDict.Of(copy).Values.ToList());
        Assert.Equal(model.modules().Select(module => module.training), copy.modules().Select(module => module.training));

        static TorchSharp.Modules.Sequential Made() => nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.BatchNorm1d(2), nn.Dropout()));
    }

    /// <summary>A factory that makes another model is refused by the name of what differs. Spec: R4.9.</summary>
    [Fact]
    public void Other_models_are_refused()
    {
        Refused(new Marked(ones(2)), new Marked(), "expected buffer mark of shape (2,) and dtype float32 from factory, got none");
        Refused(
            new Marked(ones(2)),
            new Marked(ones(1)),
            "expected buffer mark of shape (2,) and dtype float32 from factory, got shape (1,) and dtype float32");
        Refused(new Marked(child: true), new Marked(), "expected module child from factory, got none");

        static void Refused(Marked model, Marked other, string text)
            => Assert.Equal($"replicate: {text}", Assert.Throws<ArgumentException>(() => replicate(model, [CPU, CPU], () => other)).Message);
    }

    public void Dispose() => scope.Dispose();

    private sealed class Marked : nn.Module
    {
        public Marked(Tensor? mark = null, bool child = false)
            : base(nameof(Marked))
        {
            if (mark is not null)
            {
                register_buffer("mark", mark, persistent: false);
            }

            if (child)
            {
                register_module("child", nn.ReLU());
            }
        }
    }
}
