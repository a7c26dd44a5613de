using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Tests.Spec;

/// <summary>Two GPUs go through the same code as CPU devices do.</summary>
[Collection(nameof(Serial))]
public sealed class CudaTests
{
    private static readonly Device[] GPUs = [new(DeviceType.CUDA, 0), new(DeviceType.CUDA, 1)];

    /// <summary>Skip where there are no two GPUs.</summary>
    public CudaTests() => Assert.SkipUnless(cuda.is_available() && cuda.device_count() > 1, "no two GPUs here");

    /// <summary>Replicas, shards and outputs are on the device of each. Spec: R1.1, R2.1, R3.1, R4.1.</summary>
    [Fact]
    public void Verbs_go_to_their_devices()
    {
        using var scope = NewDisposeScope();
        var model = Network();
        var replicas = replicate(model, GPUs);
        Assert.Equal([0, 1], replicas.Select(replica => replica.parameters().First().device_index));
        var shards = scatter<object>(Batch(7).Inputs, GPUs);
        Assert.Equal([0, 1], shards.Select(shard => ((Tensor)shard).device_index));
        var outputs = parallel_apply(replicas, [.. shards], devices: GPUs);
        Assert.Equal([0, 1], outputs.Select(output => ((Tensor)output).device_index));
        var joined = (Tensor)gather(outputs, GPUs[1]);
        Assert.Equal(1, joined.device_index);
        Same.Within(model.call(Batch(7).Inputs.to(GPUs[0])).cpu().detach(), joined.cpu().detach(), 1e-12);
    }

    /// <summary>In both modes, with synchronized batch norm too. Spec: R7.1, R7.3, R8.1, R22.1.</summary>
    [Theory]
    [InlineData("master", false)]
    [InlineData("master", true)]
    [InlineData("all", false)]
    [InlineData("all", true)]
    public void A_trainer_leaves_the_parameters_of_one_model(string mode, bool normalized)
    {
        using var scope = NewDisposeScope();
        var model = Network(normalized ? new SyncBatchNorm(6) : null);
        var plain = Network(normalized ? nn.BatchNorm1d(6) : null);
        using var trainer = new Trainer(
            model, parameters => new Optim.SGD(parameters, lr: 0.1), (outputs, targets) => (cross_entropy((Tensor)outputs, (Tensor)targets), 1), GPUs, new TrainerOptions { mode = mode });
        using var optimizer = new Optim.SGD(plain.parameters(), lr: 0.1);
        foreach (var size in new[] { 7, 2, 8 })
        {
            var (inputs, targets) = Batch(size);
            trainer.step(inputs, targets);
            optimizer.zero_grad();
            cross_entropy(plain.call(inputs.to(GPUs[0])), targets.to(GPUs[0])).backward();
            optimizer.step();
        }

        foreach (var (own, expected) in trainer.replicas.SelectMany(replica => replica.parameters().Zip(plain.parameters())))
        {
            Same.Within(expected.detach().cpu(), own.detach().cpu(), 1e-12);
        }
    }

    /// <summary>They come back to the first GPU through gather. Spec: R25.1.</summary>
    [Fact]
    public void Data_parallel_leaves_the_gradients_of_one_model()
    {
        using var scope = NewDisposeScope();
        var (module, plain) = (Network(), Network());
        using var net = new DataParallel<Tensor, Tensor>(module, GPUs);
        var (inputs, targets) = (Batch(7).Inputs.to(GPUs[0]), Batch(7).Targets.to(GPUs[0]));
        cross_entropy(net.call(inputs), targets).backward();
        cross_entropy(plain.call(inputs), targets).backward();
        foreach (var (one, other) in module.parameters().Zip(plain.parameters()))
        {
            Assert.Equal(0, one.grad!.device_index);
            Same.Within(other.grad!, one.grad!, 1e-12);
        }
    }

    private static Sequential Network(nn.Module<Tensor, Tensor>? norm = null)
    {
        random.manual_seed(3);
        var (first, last) = (nn.Linear(4, 6), nn.Linear(6, 3));
        return nn.Sequential(first, norm ?? nn.Identity(), nn.Tanh(), last).to(float64).to(GPUs[0]);
    }

    /// <summary>Make a batch on the CPU: scatter takes it to the GPUs.</summary>
    private static (Tensor Inputs, Tensor Targets) Batch(int size)
        => (linspace(-2, 2, size * 4, dtype: float64).view(size, 4).sin(), arange(size) % 3);
}
