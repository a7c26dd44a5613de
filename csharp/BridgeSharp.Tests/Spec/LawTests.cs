using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Tests.Spec;

/// <summary>The first law: any number of replicas and any shard sizes train as one undivided model.</summary>
[Collection(nameof(Serial))]
public sealed class LawTests
{
    /// <summary>Gradients agree within 1e-12 of the largest; those of one replica are equal. Spec: R8.1, R5.1.</summary>
    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(3)]
    [InlineData(4)]
    [InlineData(5)]
    public void Gradients_agree(int count)
    {
        for (var size = 1; size <= 17; size++)
        {
            using var scope = NewDisposeScope();
            var model = Model(size);
            var batch = Batch(size, size);
            var expected = Gradients(model, batch);
            var devices = Enumerable.Repeat(CPU, count).ToList();
            var replicas = replicate(model, devices);
            var shards = scatter(batch, devices);
            foreach (var (replica, shard) in replicas.Zip(shards))
            {
                Gradients(replica, shard);
            }

            average([.. replicas.Take(shards.Count)], [.. shards.Select(shard => (double)shard.Targets.size(0))]);

            var limit = count == 1 ? 0 : 1e-12 * expected.Max(gradient => gradient.abs().max().item<double>());
            foreach (var (gradient, parameter) in expected.Zip(model.parameters()))
            {
                Assert.InRange((parameter.grad! - gradient).abs().max().item<double>(), 0, limit);
            }
        }
    }

    /// <summary>Several steps leave the parameters of a plain loop, one replica its bits. Spec: R8.1.</summary>
    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(3)]
    [InlineData(5)]
    public void Training_agrees(int count)
    {
        using var scope = NewDisposeScope();
        var (model, plain) = (Model(1), Model(1));
        using var trainer = new Trainer(
            model, new Optim.Adam(model.parameters()), (outputs, targets) => cross_entropy(outputs, targets), [.. Enumerable.Repeat(CPU, count)]);
        var optimizer = new Optim.Adam(plain.parameters());
        foreach (var size in new[] { 7, 1, 16, 5 })
        {
            var batch = Batch(size, size);
            optimizer.zero_grad();
            var loss = cross_entropy(plain.call(batch.Inputs), batch.Targets);
            loss.backward();
            optimizer.step();
            Assert.Equal(loss.item<double>(), trainer.step(batch.Inputs, batch.Targets), 1e-12);
        }

        foreach (var (expected, actual) in plain.parameters().Zip(model.parameters()))
        {
            Same.Within(expected.detach(), actual.detach(), count == 1 ? 0 : 1e-12);
        }
    }

    /// <summary>Scatter, forward and gather give the outputs of one model. Spec: R1.1, R2.1, R3.1.</summary>
    [Fact]
    public void Outputs_agree()
    {
        for (var size = 1; size <= 17; size++)
        {
            using var scope = NewDisposeScope();
            var model = Model(size);
            var (inputs, _) = Batch(size, size);
            Device[] devices = [CPU, CPU, CPU];
            var joined = (Tensor)gather(parallel_apply(replicate(model, devices), [.. scatter<object>(inputs, devices)]));
            Assert.InRange((joined - model.call(inputs)).abs().max().item<double>(), 0, 1e-13);
        }
    }

    private static Sequential Model(int seed)
    {
        random.manual_seed(seed);
        return nn.Sequential(nn.Linear(6, 11), nn.Tanh(), nn.Linear(11, 7), nn.ReLU(), nn.Linear(7, 4)).to(float64);
    }

    private static (Tensor Inputs, Tensor Targets) Batch(int seed, int size)
    {
        using var generator = new Generator((ulong)seed);
        return (randn(size, 6, dtype: float64, generator: generator), randint(0, 4, size, dtype: int64, generator: generator));
    }

    private static List<Tensor> Gradients(Sequential model, (Tensor Inputs, Tensor Targets) batch)
    {
        model.zero_grad();
        cross_entropy(model.call(batch.Inputs), batch.Targets).backward();
        return [.. model.parameters().Select(parameter => parameter.grad!.clone())];
    }
}
