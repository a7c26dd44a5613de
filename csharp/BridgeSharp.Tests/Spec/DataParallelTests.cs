using TorchSharp;
using Xunit;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>DataParallel is the module, only on several replicas.</summary>
[Collection(nameof(Serial))]
public sealed class DataParallelTests
{
    /// <summary>Two backward passes add up as on one device, on inputs too. Spec: R25.1.</summary>
    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(3)]
    [InlineData(5)]
    [InlineData(9)]
    public void Gradients_are_those_of_the_undivided_batch(int replicas)
    {
        using var scope = NewDisposeScope();
        var (module, plain) = (Network(), Network());
        using var net = new DataParallel<Tensor, Tensor>(module, Cpus(replicas));
        var inputs = Inputs(7).requires_grad_();
        var others = inputs.detach().clone().requires_grad_();
        for (var pass = 0; pass < 2; pass++)
        {
            nn.functional.cross_entropy(net.call(inputs), Targets(7)).backward();
            nn.functional.cross_entropy(plain.call(others), Targets(7)).backward();
        }

        AssertClose(inputs.grad!, others.grad!);
        foreach (var (one, other) in module.parameters().Zip(plain.parameters()))
        {
            AssertClose(one.grad!, other.grad!);
        }
    }

    /// <summary>With SyncBatchNorm the whole batch is normalized as one. Spec: R25.1, R22.1.</summary>
    [Fact]
    public void Synchronized_batch_norm_makes_it_one_model()
    {
        using var scope = NewDisposeScope();
        var module = Network(new SyncBatchNorm(6));
        var plain = Network(nn.BatchNorm1d(6));
        using var net = new DataParallel<Tensor, Tensor>(module, Cpus(3));
        nn.functional.cross_entropy(net.call(Inputs(8)), Targets(8)).backward();
        nn.functional.cross_entropy(plain.call(Inputs(8)), Targets(8)).backward();
        foreach (var (one, other) in module.parameters().Zip(plain.parameters()))
        {
            AssertClose(one.grad!, other.grad!);
        }
    }

    /// <summary>Two batches in one loss are differentiated as on one device. Spec: R25.4.</summary>
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void Several_forwards_may_come_before_a_backward(bool normalized)
    {
        using var scope = NewDisposeScope();
        var module = Network(normalized ? new SyncBatchNorm(6) : null);
        var plain = Network(normalized ? nn.BatchNorm1d(6) : null);
        using var net = new DataParallel<Tensor, Tensor>(module, Cpus(3));
        foreach (var run in new nn.Module<Tensor, Tensor>[] { net, plain })
        {
            (run.call(Inputs(8)) * run.call(Inputs(8).cos())).sum().backward();
        }

        foreach (var (one, other) in module.parameters().Zip(plain.parameters()))
        {
            AssertClose(one.grad!, other.grad!);
        }
    }

    /// <summary>A graph of parameters that have changed since fails, as on one device. Spec: R25.4.</summary>
    [Fact]
    public void Backward_after_an_update_is_refused()
    {
        using var scope = NewDisposeScope();
        var module = Network();
        using var net = new DataParallel<Tensor, Tensor>(module, Cpus(2));
        var loss = net.call(Inputs(4)).sum();
        nn.init.ones_(module.get_parameter("3.weight"));
        using (no_grad())
        {
            net.call(Inputs(4));
        }

        Assert.ThrowsAny<Exception>(() => loss.backward());
        Assert.Contains("modified by an inplace operation", net.failure!.Message, StringComparison.Ordinal);
    }

    /// <summary>A gradient that is to be differentiated again would lack its graph. Spec: R25.4.</summary>
    [Fact]
    public void Second_derivatives_are_refused()
    {
        using var scope = NewDisposeScope();
        var module = Network();
        using var net = new DataParallel<Tensor, Tensor>(module, Cpus(2));
        var loss = net.call(Inputs(4)).sum();

        Assert.ThrowsAny<Exception>(() => loss.backward(create_graph: true));

        Assert.Equal("DataParallel: expected a backward without create_graph, got it on", net.failure!.Message);
        Assert.All(module.parameters(), parameter => Assert.Null(parameter.grad));
    }

    /// <summary>An optimizer on its parameters trains the module; replicas follow. Spec: R25.2.</summary>
    [Fact]
    public void Training_loop_stays_as_it_is()
    {
        using var scope = NewDisposeScope();
        using var net = new DataParallel<Tensor, Tensor>(Network(), Cpus(2));
        Assert.Equal(["module.0.weight", "module.0.bias", "module.3.weight", "module.3.bias"], StateDict.Of(net).Keys);
        using var optimizer = new BridgeSharp.Optim.SGD(net.parameters(), lr: 0.5);
        var losses = new List<double>();
        for (var step = 0; step < 3; step++)
        {
            optimizer.zero_grad();
            var loss = nn.functional.cross_entropy(net.call(Inputs(6)), Targets(6));
            loss.backward();
            optimizer.step();
            losses.Add(loss.item<double>());
        }

        Assert.True(losses[0] > losses[1] && losses[1] > losses[2]);
    }

    /// <summary>In evaluation nothing is dropped, in any replica. Spec: R25.2.</summary>
    [Fact]
    public void Modes_hold_in_every_replica()
    {
        using var scope = NewDisposeScope();
        using var net = new DataParallel<Tensor, Tensor>(nn.Sequential(nn.Dropout(0.5)), Cpus(3));
        var ones = torch.ones(6, 8);
        Assert.False(net.call(ones).equal(ones).all().item<bool>());
        net.eval();
        Assert.True(net.call(ones).equal(ones).all().item<bool>());
    }

    /// <summary>What is frozen later has no gradient, and what is unfrozen has all of it. Spec: R4.11.</summary>
    [Fact]
    public void Replicas_follow_what_is_frozen()
    {
        using var scope = NewDisposeScope();
        var module = nn.Linear(2, 1);
        using var net = new DataParallel<Tensor, Tensor>(module, Cpus(3));
        module.weight.requires_grad = false;
        net.call(ones(3, 2)).sum().backward();
        Assert.Null(module.weight.grad);
        module.weight.requires_grad = true;
        net.call(ones(3, 2)).sum().backward();
        Assert.Equal([3f, 3f], module.weight.grad!.data<float>().ToArray());
    }

    /// <summary>Batch norm sees its shard; the module keeps what replica 0 saw. Spec: R25.3.</summary>
    [Fact]
    public void Module_keeps_the_buffers_of_replica_0()
    {
        using var scope = NewDisposeScope();
        var module = nn.BatchNorm1d(2, momentum: 1.0).to(float64);
        using var net = new DataParallel<Tensor, Tensor>(module, Cpus(2));
        net.call(tensor([1.0, 2.0, 3.0, 2.0, 50.0, 60.0, 70.0, 80.0]).view(4, 2));
        Assert.Equal([2.0, 2.0], module.running_mean!.data<double>().ToArray());
    }

    /// <summary>A backward that fails, as a second one does, is an error and not the end of the process. Spec: R25.1.</summary>
    [Fact]
    public void A_failing_backward_is_an_error()
    {
        using var scope = NewDisposeScope();
        using var net = new DataParallel<Tensor, Tensor>(Network(), Cpus(2));
        var loss = net.call(Inputs(4)).sum();
        loss.backward(retain_graph: true);
        Assert.Null(net.failure);

        var error = Assert.ThrowsAny<Exception>(() => loss.backward());

        Assert.Contains("CSharpNode returned an invalid gradient", error.Message, StringComparison.Ordinal);
        Assert.Contains("backward through the graph a second time", net.failure!.Message, StringComparison.Ordinal);
        net.call(Inputs(4)).sum().backward();
        Assert.Null(net.failure);
    }

    private static nn.Module<Tensor, Tensor> Network(nn.Module<Tensor, Tensor>? norm = null)
    {
        random.manual_seed(3);
        var (first, last) = (nn.Linear(4, 6), nn.Linear(6, 3));
        return nn.Sequential(first, norm ?? nn.Identity(), nn.Tanh(), last).to(float64);
    }

    private static Tensor Inputs(int count) => linspace(-2, 2, count * 4, dtype: float64).view(count, 4).sin();

    private static Tensor Targets(int count) => arange(count) % 3;

    private static Device[] Cpus(int count) => [.. Enumerable.Repeat(CPU, count)];

    private static void AssertClose(Tensor one, Tensor other) => Assert.True((one - other).abs().max().item<double>() <= 1e-12);
}
