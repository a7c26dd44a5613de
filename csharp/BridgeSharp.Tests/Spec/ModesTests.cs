using BridgeSharp.Parallel;
using TorchSharp;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Tests.Spec;

/// <summary>The modes, buffers and schedulers of the trainer, and models with parameters of every kind.</summary>
[Collection(nameof(Serial))]
public sealed class ModesTests
{
    /// <summary>The rate halves per update, whatever the replicas and the scaling. Spec: R7.6.</summary>
    [Theory]
    [InlineData("master")]
    [InlineData("all")]
    public void Schedulers_step_once_an_update_and_see_rates_unscaled(string mode)
    {
        using var scope = NewDisposeScope();
        var model = nn.Linear(1, 1);
        using var trainer = new Trainer(
            model,
            parameters => new Optim.SGD(parameters, lr: 0.5),
            (outputs, targets) => (mse_loss((Tensor)outputs, (Tensor)targets), 1),
            TrainerTests.Cpus(3),
            new TrainerOptions { mode = mode, accumulate = 2, scaling = new LinearScaling(3), scheduler = optimizer => torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5) });
        for (var i = 0; i < 6; i++)
        {
            trainer.step(ones(3, 1), ones(3, 1));
        }

        Assert.Equal(3, trainer.updates);
        Assert.Equal(mode == "all" ? 3 : 1, trainer.schedulers.Count);
        Assert.All(trainer.optimizers, optimizer => Assert.Equal(0.0625, optimizer.ParamGroups.Single().LearningRate));
    }

    /// <summary>Parameters and gradients are equal bit for bit, in storage of their own. Spec: R7.3.</summary>
    [Fact]
    public void Mode_all_keeps_replicas_equal_and_apart()
    {
        using var scope = NewDisposeScope();
        random.manual_seed(0);
        var model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).to(float64);
        using var trainer = new Trainer(
            model, parameters => new Optim.Adam(parameters), (outputs, targets) => (mse_loss((Tensor)outputs, (Tensor)targets), 1), TrainerTests.Cpus(3), new TrainerOptions { mode = "all" });
        foreach (var size in new[] { 9, 6, 8, 12 })
        {
            trainer.step(randn(size, 3, dtype: float64), randn(size, 2, dtype: float64));
        }

        var tensors = trainer.replicas.Select(replica => StateDict.Of(replica).Values.Concat(replica.parameters().Select(parameter => parameter.grad!)).ToList()).ToList();
        for (var i = 0; i < tensors[0].Count; i++)
        {
            Same.Trees(tensors[0][i], tensors[1][i]);
            Same.Trees(tensors[0][i], tensors[2][i]);
        }

        foreach (var tensor in tensors[1])
        {
            tensor.detach().zero_();
        }

        Assert.All(tensors[0].Zip(tensors[2]), pair => Same.Trees(pair.First, pair.Second));
        Assert.NotEqual(0, tensors[0][0].abs().max().item<double>());
    }

    /// <summary>After a step replicas have the statistics that the policy says. Spec: R6.4, R7.1, R7.3.</summary>
    [Theory]
    [InlineData("master", "first", 1.0, 1.0)]
    [InlineData("master", "mean", 2.0, 2.0)]
    [InlineData("master", "each", 1.0, 3.0)]
    [InlineData("all", "first", 1.0, 1.0)]
    [InlineData("all", "mean", 2.0, 2.0)]
    [InlineData("all", "each", 1.0, 3.0)]
    public void Buffers_follow_their_policy(string mode, string buffers, double first, double second)
    {
        using var scope = NewDisposeScope();
        var model = nn.BatchNorm1d(1, momentum: 1).to(float64);
        using var trainer = new Trainer(
            model, parameters => new Optim.SGD(parameters, lr: 0), (outputs, _) => (((Tensor)outputs).sum(), 1), TrainerTests.Cpus(2), new TrainerOptions { mode = mode, buffers = buffers });
        trainer.step(tensor(new double[] { 0, 2, 2, 4 }).unsqueeze(1), ones(4));
        Assert.Equal([first, second], trainer.replicas.Select(replica => StateDict.Of(replica)["running_mean"].item<double>()));
    }

    /// <summary>A model that is frozen and unfrozen in part on the way trains as one. Spec: R4.11, R8.1.</summary>
    [Theory]
    [InlineData("master")]
    [InlineData("all")]
    public void Replicas_follow_what_is_frozen_and_in_which_mode(string mode)
    {
        using var scope = NewDisposeScope();
        var states = new[] { 3, 1 }.Select(replicas =>
        {
            random.manual_seed(2);
            var (first, norm, last) = (nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2));
            var model = nn.Sequential(first, norm, last).to(float64);
            using var trainer = new Trainer(
                model, parameters => new Optim.SGD(parameters, lr: 0.5), (outputs, targets) => (mse_loss((Tensor)outputs, (Tensor)targets), 1), TrainerTests.Cpus(replicas), new TrainerOptions { mode = mode });
            var (inputs, targets) = (randn(7, 3, dtype: float64), randn(7, 2, dtype: float64));
            foreach (var frozen in new[] { "first", "", "last", "first last" })
            {
                norm.eval();
                foreach (var (name, layer) in new[] { ("first", first), ("last", last) })
                {
                    foreach (var parameter in layer.parameters())
                    {
                        parameter.requires_grad = !frozen.Contains(name, StringComparison.Ordinal);
                    }
                }

                trainer.step(inputs, targets);
                Assert.Equal((frozen.Contains("first", StringComparison.Ordinal), frozen.Contains("last", StringComparison.Ordinal)), (first.weight.grad is null, last.weight.grad is null));
            }

            return model.parameters().Select(parameter => parameter.detach().clone()).ToList();
        }).ToList();
        Assert.All(states[0].Zip(states[1]), pair => Same.Within(pair.Second, pair.First, 1e-12));
    }

    /// <summary>A model that is loaded, then clamped, predicts and trains as one. Spec: R4.11, R8.1.</summary>
    [Theory]
    [InlineData("master")]
    [InlineData("all")]
    public void Replicas_follow_values_that_change_between_steps(string mode)
    {
        using var scope = NewDisposeScope();
        var outputs = new[] { 3, 1 }.Select(replicas =>
        {
            random.manual_seed(2);
            var (first, norm, last) = (nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2));
            var model = nn.Sequential(first, norm, last).to(float64);
            norm.eval();
            using var trainer = new Trainer(
                model, parameters => new Optim.SGD(parameters, lr: 0.5), (outputs, targets) => (mse_loss((Tensor)outputs, (Tensor)targets), 1), TrainerTests.Cpus(replicas), new TrainerOptions { mode = mode });
            StateDict.Load(model, StateDict.Of(model).ToDictionary(own => own.Key, own => own.Value.is_floating_point() ? rand_like(own.Value) + 1 : own.Value));
            var (inputs, targets) = (randn(7, 3, dtype: float64), randn(7, 2, dtype: float64));
            var predicted = (Tensor)trainer.predict(inputs);
            trainer.step(inputs, targets);
            using (no_grad())
            {
                model.parameters().ToList().ForEach(parameter => parameter.clamp_(-0.25, 0.25));
            }

            var loss = tensor(trainer.step(inputs, targets));
            return model.parameters().Select(parameter => parameter.detach().clone()).Append(predicted).Append(loss).ToList();
        }).ToList();
        Assert.All(outputs[0].Zip(outputs[1]), pair => Same.Within(pair.Second, pair.First, 1e-12));
    }

    /// <summary>Reduced, accumulated, clipped and moved once. Spec: R5.7, R7.4, R7.5, R8.1.</summary>
    [Theory]
    [InlineData("master", 1)]
    [InlineData("master", 2)]
    [InlineData("all", 1)]
    [InlineData("all", 2)]
    public void A_tied_embedding_trains_as_in_one_model(string mode, int accumulate)
    {
        using var scope = NewDisposeScope();
        random.manual_seed(1);
        var model = new Language().to(float64);
        var plain = replicate(model, [CPU, CPU])[1];
        using var trainer = new Trainer(
            model, Made, (outputs, targets) => (cross_entropy((Tensor)outputs, (Tensor)targets), 1), TrainerTests.Cpus(2), new TrainerOptions { mode = mode, accumulate = accumulate, clip_norm = 0.25 });
        var parameters = Registered.Parameters(plain).ToList();
        Assert.Equal((3, 2), (plain.parameters().Count(), parameters.Count));
        var optimizer = Made(parameters);
        for (var i = 0; i < 3; i++)
        {
            var (words, following) = (randint(7, 10), randint(7, 10));
            for (var part = 0; part < accumulate; part++)
            {
                var taken = TensorIndex.Slice(part, null, accumulate);
                trainer.step(words[taken], following[taken]);
            }

            plain.zero_grad();
            cross_entropy(plain.call(words), following).backward();
            nn.utils.clip_grad_norm_(parameters, 0.25);
            optimizer.step();
        }

        foreach (var (expected, actual) in parameters.Zip(Registered.Parameters(model)))
        {
            Same.Within(expected.detach(), actual.detach(), 1e-12);
        }

        static torch.optim.Optimizer Made(IEnumerable<TorchSharp.Modules.Parameter> parameters) => new Optim.SGD(parameters, lr: 0.5, momentum: 0.9);
    }

    /// <summary>They train as in one model: in no step is a gradient made up. Spec: R5.4, R5.7.</summary>
    [Fact]
    public void Frozen_and_tied_parameters()
    {
        using var scope = NewDisposeScope();
        var states = new[] { 3, 1 }.Select(replicas =>
        {
            random.manual_seed(0);
            var model = new Tied();
            model.eval();
            model.First.bias!.requires_grad_(false);
            using var trainer = new Trainer(
                model, new Optim.SGD(model.parameters(), lr: 0.5, weight_decay: 0.1), (outputs, targets) => mse_loss(outputs, targets), TrainerTests.Cpus(replicas));
            for (var i = 0; i < 3; i++)
            {
                trainer.step(eye(3), eye(3));
            }

            Assert.Null(model.First.bias!.grad);
            return model.parameters().Select(parameter => parameter.detach().clone()).ToList();
        }).ToList();
        Assert.All(states[0].Zip(states[1]), pair => Same.Within(pair.Second, pair.First, 1e-6));
    }
}
