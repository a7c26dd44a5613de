using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Tests.Spec;

/// <summary>Batch normalization over the samples of all replicas.</summary>
[Collection(nameof(Serial))]
public sealed class SyncBatchNormTests
{
    /// <summary>Gradients, weights and statistics are those of the undivided model. Spec: R22.1.</summary>
    [Theory]
    [InlineData(1, 0.1, true, true)]
    [InlineData(2, 0.1, true, true)]
    [InlineData(3, 0.25, true, true)]
    [InlineData(4, 0.1, false, true)]
    [InlineData(5, 0.1, true, false)]
    public void Replicas_train_as_one_model(int replicas, double momentum, bool affine, bool track)
    {
        using var scope = NewDisposeScope();
        var own = Model(() => new SyncBatchNorm(5, 1e-5, momentum, affine, track));
        var plain = Model(() => nn.BatchNorm1d(5, 1e-5, momentum, affine, track));
        using var trainer = new Trainer(
            own, new Optim.SGD(own.parameters(), lr: 0.05), (outputs, targets) => mse_loss(outputs, targets), TrainerTests.Cpus(replicas));
        var optimizer = new Optim.SGD(plain.parameters(), lr: 0.05);
        foreach (var size in new[] { 7, 5, 13, 3 })
        {
            var (inputs, targets) = (randn(size, 3, dtype: float64), randn(size, 4, dtype: float64));
            optimizer.zero_grad();
            var whole = mse_loss(plain.call(inputs), targets);
            whole.backward();
            var loss = trainer.step(inputs, targets);
            var largest = plain.parameters().Max(parameter => parameter.grad!.abs().max().item<double>());
            foreach (var (expected, actual) in plain.parameters().Zip(own.parameters()))
            {
                Assert.InRange((expected.grad! - actual.grad!).abs().max().item<double>(), 0, 1e-12 * largest);
            }

            Assert.Equal(whole.item<double>(), loss, 1e-12);
            optimizer.step();
        }

        foreach (var replica in trainer.replicas)
        {
            foreach (var (expected, actual) in StateDict.Of(plain).Values.Zip(StateDict.Of(replica).Values))
            {
                Same.Within(expected, actual, expected.is_floating_point() ? 1e-11 : 0);
            }
        }

        Sequential Model(Func<nn.Module<Tensor, Tensor>> norm)
        {
            random.manual_seed(3);
            return nn.Sequential(nn.Linear(3, 5), norm(), nn.Tanh(), nn.Linear(5, 5), norm(), nn.Linear(5, 4)).to(float64);
        }
    }

    /// <summary>Statistics are per channel, over samples and places. Spec: R22.1.</summary>
    [Theory]
    [InlineData("6 3")]
    [InlineData("6 3 2")]
    [InlineData("5 3 2 2")]
    [InlineData("4 3 2 2 2")]
    public void Any_number_of_dimensions(string sizes)
    {
        long[] shape = [.. sizes.Split(' ').Select(long.Parse)];
        using var scope = NewDisposeScope();
        var inputs = randn(shape, dtype: float64);
        nn.Module<Tensor, Tensor> whole = shape.Length switch
        {
            4 => nn.BatchNorm2d(3),
            5 => nn.BatchNorm3d(3),
            _ => nn.BatchNorm1d(3),
        };
        var replicas = bridge.replicate(new SyncBatchNorm(3).to(float64), TrainerTests.Cpus(2));
        var shards = bridge.scatter<object>(inputs, TrainerTests.Cpus(2));
        var outputs = (Tensor)bridge.gather(bridge.parallel_apply(replicas, [.. shards]));
        Assert.InRange((outputs - whole.to(float64).call(inputs)).abs().max().item<double>(), 0, 1e-12);
    }

    /// <summary>Outputs, gradients and statistics have the same bits. Spec: R22.2.</summary>
    [Theory]
    [InlineData(ScalarType.Float32)]
    [InlineData(ScalarType.Float64)]
    public void Alone_and_in_evaluation_it_is_that_of_pytorch(ScalarType dtype)
    {
        using var scope = NewDisposeScope();
        var (own, other) = (new SyncBatchNorm(3).to(dtype), nn.BatchNorm1d(3).to(dtype));
        foreach (var training in new[] { true, true, false })
        {
            var inputs = randn(5, 3, dtype: dtype);
            own.train(training);
            other.train(training);
            Same.Trees(Results(other, inputs), Results(own, inputs));
        }

        static List<Tensor?> Results(nn.Module<Tensor, Tensor> layer, Tensor inputs)
        {
            layer.zero_grad();
            var leaf = inputs.clone().requires_grad_();
            var outputs = layer.call(leaf);
            outputs.square().sum().backward();
            return [outputs.detach(), leaf.grad, .. layer.parameters().Select(parameter => parameter.grad!.clone()), .. StateDict.Of(layer).Values.Select(value => value.detach().clone())];
        }
    }

    /// <summary>One thread per replica, however many torch may use: the same bits. Spec: R22.3.</summary>
    [Fact]
    public void Threads_do_not_matter()
    {
        using var scope = NewDisposeScope();
        var before = get_num_threads();
        List<List<Tensor>> states = [];
        foreach (var threads in new[] { 1, 2 })
        {
            set_num_threads(threads);
            random.manual_seed(1);
            var model = nn.Sequential(nn.Linear(3, 5), new SyncBatchNorm(5), nn.Tanh(), nn.Linear(5, 4), new SyncBatchNorm(4)).to(float64);
            using var trainer = new Trainer(
                model, new Optim.SGD(model.parameters(), lr: 0.1), (outputs, targets) => mse_loss(outputs, targets), TrainerTests.Cpus(4));
            foreach (var size in new[] { 8, 5, 3 })
            {
                trainer.step(linspace(-1, 1, size * 3, dtype: float64).reshape(size, 3), linspace(1, -1, size * 4, dtype: float64).reshape(size, 4));
            }

            states.Add([.. StateDict.Of(model).Values.Select(value => value.clone())]);
        }

        set_num_threads(before);
        Same.Trees(states[0], states[1]);
    }

    /// <summary>As PyTorch refuses it; one sample per replica is fine. Spec: R22.1, R22.2.</summary>
    [Fact]
    public void A_batch_of_one_value_per_channel_is_refused()
    {
        using var scope = NewDisposeScope();
        var model = new SyncBatchNorm(2);
        using var trainer = new Trainer(
            model, new Optim.SGD(model.parameters()), (outputs, targets) => mse_loss(outputs, targets), TrainerTests.Cpus(2));
        trainer.step(randn(2, 2), randn(2, 2));
        var error = Assert.Throws<ReplicaException>(() => trainer.step(randn(2), randn(2)));
        Assert.Contains("SyncBatchNorm: expected an input (N, C, *), got shape (1,)", error.Message, StringComparison.Ordinal);
        error = Assert.Throws<ReplicaException>(() => trainer.step(randn(1, 2), randn(1, 2)));
        Assert.Contains("Expected more than 1 value per channel when training, got input size torch.Size([1, 2])", error.Message, StringComparison.Ordinal);
    }

    /// <summary>Outputs are bfloat16, within its rounding of those of float32. Spec: R22.1.</summary>
    [Fact]
    public void Half_precision_is_normalized_in_single()
    {
        using var scope = NewDisposeScope();
        var inputs = randn(64, 3).to(bfloat16);
        var replicas = bridge.replicate(new SyncBatchNorm(3), TrainerTests.Cpus(2));
        var outputs = (Tensor)bridge.gather(bridge.parallel_apply(replicas, [.. bridge.scatter<object>(inputs, TrainerTests.Cpus(2))]));
        Assert.Equal(bfloat16, outputs.dtype);
        Assert.InRange((outputs.to(float32) - nn.BatchNorm1d(3).call(inputs.to(float32))).abs().max().item<float>(), 0, Math.Pow(2, -6));
    }
}
