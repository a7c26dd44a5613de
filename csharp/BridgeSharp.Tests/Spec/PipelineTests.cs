using System.Text.Json;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>A pipeline is the undivided model, only stage by stage.</summary>
[Collection(nameof(Serial))]
public sealed class PipelineTests
{
    public static TheoryData<string> Cases => Vectors.Names("pipeline");

    /// <summary>Outputs, gradients and refusals are those of the vectors. Spec: R24.1, R24.2, R24.3.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("pipeline", name);
        Vectors.Check(entry, () =>
        {
            var stages = entry.Items("stages").Select(numbers => Linear(numbers[0].GetDouble(), numbers[1].GetDouble())).ToList();
            using var pipeline = new Pipeline<Tensor, Tensor>(
                stages, Cpus(entry.GetProperty("devices").GetInt32()), entry.GetProperty("micro_batches").GetInt32());
            var inputs = Read(entry, "inputs").requires_grad_();
            var outputs = pipeline.call(inputs);
            outputs.backward([Read(entry, "upstream")]);
            Same.Trees(Read(entry, "expected"), outputs.detach());
            var expected = entry.Members("gradients").ToDictionary(own => own.Name, own => Vectors.Tree(own.Value));
            expected.Remove("inputs", out var gradient);
            Same.Trees(gradient, inputs.grad);
            Same.Trees(expected, pipeline.named_parameters().ToDictionary(own => own.name, own => own.parameter.grad));
        });
    }

    /// <summary>Outputs and gradients are the undivided batch's, uneven micro-batches or not. Spec: R24.1.</summary>
    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(3)]
    [InlineData(7)]
    [InlineData(9)]
    public void It_is_the_undivided_model(int micro_batches)
    {
        using var scope = NewDisposeScope();
        var plain = nn.Sequential(Network());
        var pipeline = new Pipeline<Tensor, Tensor>(Network(), Cpus(3), micro_batches);
        var inputs = randn(7, 4, dtype: float64).requires_grad_();
        var others = inputs.detach().clone().requires_grad_();
        var targets = arange(7) % 3;
        nn.functional.cross_entropy(pipeline.call(inputs), targets).backward();
        nn.functional.cross_entropy(plain.call(others), targets).backward();
        Same.Within(others.grad!, inputs.grad!, 1e-12);
        foreach (var (one, other) in pipeline.parameters().Zip(plain.parameters()))
        {
            Same.Within(other.grad!, one.grad!, 1e-12);
        }
    }

    /// <summary>The same inputs give the same bits, run after run. Spec: R24.1.</summary>
    [Fact]
    public void Same_bits_again()
    {
        using var scope = NewDisposeScope();
        var inputs = randn(64, 4, dtype: float64);
        var gradients = Enumerable.Range(0, 5).Select(_ => Gradients()).ToList();
        Assert.All(gradients, other => Same.Trees(gradients[0], other));

        List<Tensor?> Gradients()
        {
            var pipeline = new Pipeline<Tensor, Tensor>(Network(), Cpus(3), 8);
            pipeline.call(inputs).square().sum().backward();
            return [.. pipeline.parameters().Select(parameter => parameter.grad)];
        }
    }

    /// <summary>A tuple that one stage returns is the arguments of the next. Spec: R24.2.</summary>
    [Fact]
    public void Stages_hand_tuples_on()
    {
        using var scope = NewDisposeScope();
        var halves = new Pipeline<Tensor, Tensor>([new Halves(), new Product()], Cpus(2), 2);
        var pairs = tensor([2.0, 3.0, 4.0, 5.0, 6.0, 7.0]).view(3, 2);
        Assert.Equal([6.0, 20.0, 42.0], halves.call(pairs).data<double>().ToArray());
        var product = new Pipeline<(Tensor, Tensor), Tensor>([new Product()], Cpus(1), 2);
        Assert.Equal([6.0, 20.0, 42.0], product.call((pairs[.., 0], pairs[.., 1])).data<double>().ToArray());
    }

    /// <summary>The error has the stage's index; the next batch runs. Spec: R24.3.</summary>
    [Fact]
    public void Failing_stage_is_named()
    {
        using var scope = NewDisposeScope();
        var pipeline = new Pipeline<Tensor, Tensor>([nn.Identity(), new Picky(), nn.Identity()], Cpus(3), 3);
        var error = Assert.Throws<ReplicaException>(() => pipeline.call(tensor([1.0, 2.0, 10.0])));
        Assert.Contains("in replica 1 on device cpu: ArgumentException: too large", error.Message, StringComparison.Ordinal);
        Assert.Equal(1, Assert.Single(error.Failures).Replica);
        Assert.Equal([1.0, 2.0, 3.0], pipeline.call(tensor([1.0, 2.0, 3.0])).data<double>().ToArray());
    }

    /// <summary>Stages are no replicas of each other: they have no statistics to share. Spec: R24.3.</summary>
    [Fact]
    public void Synchronizing_stages_are_refused()
    {
        var error = Assert.Throws<ArgumentException>(
            () => new Pipeline<Tensor, Tensor>([nn.Linear(2, 2), new SyncBatchNorm(2)], Cpus(2), 2));
        Assert.Equal("Pipeline: expected stages that do not synchronize, got stage 1", error.Message);
    }

    /// <summary>A batch leaves nothing but its outputs, and a disposed pipeline no stage. Spec: R24.1.</summary>
    [Fact]
    public void Nothing_is_left()
    {
        var pipeline = new Pipeline<Tensor, Tensor>(Network(), Cpus(3), 2);
        using var inputs = ones(7, 4, dtype: float64);
        var (before, own) = (Same.Live(), pipeline.parameters().Count());
        using (var outputs = pipeline.call(inputs))
        {
            Assert.Equal(before + 1, Same.Live());
        }

        pipeline.Dispose();
        Assert.Equal(before - own, Same.Live());
    }

    /// <summary>Each stage is on its GPU, and the outputs on the last. Spec: R24.1.</summary>
    [Fact]
    public void Stages_are_on_their_gpus()
    {
        Assert.SkipUnless(cuda.is_available() && cuda.device_count() > 1, "no two GPUs here");
        using var scope = NewDisposeScope();
        var pipeline = new Pipeline<Tensor, Tensor>([.. Network().Take(2)], [device("cuda:0"), device("cuda:1")], 2);
        Assert.Equal([0, 0, 1, 1], pipeline.parameters().Select(parameter => parameter.device_index));
        Assert.Equal(1, pipeline.call(randn(4, 4, dtype: float64, device: device("cuda:0"))).device_index);
    }

    /// <summary>Make three stages in float64.</summary>
    private static nn.Module<Tensor, Tensor>[] Network()
    {
        random.manual_seed(3);
        var (first, second, third) = (nn.Linear(4, 6), nn.Linear(6, 6), nn.Linear(6, 3));
        nn.Module<Tensor, Tensor>[] stages = [nn.Sequential(first, nn.Tanh()), second, nn.Sequential(nn.Sigmoid(), third)];
        return Array.ConvertAll(stages, stage => stage.to(float64));
    }

    /// <summary>Make a linear layer of one feature.</summary>
    private static Linear Linear(double weight, double bias)
    {
        var layer = nn.Linear(1, 1).to(float64);
        nn.init.constant_(layer.weight, weight);
        nn.init.constant_(layer.bias!, bias);
        return layer;
    }

    private static Tensor Read(JsonElement entry, string name) => (Tensor)Vectors.Tree(entry.GetProperty(name))!;

    private static Device[] Cpus(int count) => [.. Enumerable.Repeat(CPU, count)];

    /// <summary>Cuts pairs in two.</summary>
    private sealed class Halves() : nn.Module<Tensor, (Tensor, Tensor)>(nameof(Halves))
    {
        /// <inheritdoc/>
        public override (Tensor, Tensor) forward(Tensor input) => (input[.., ..1], input[.., 1..]);
    }

    /// <summary>Takes two arguments.</summary>
    private sealed class Product() : nn.Module<Tensor, Tensor, Tensor>(nameof(Product))
    {
        /// <inheritdoc/>
        public override Tensor forward(Tensor input1, Tensor input2) => input1 * input2;
    }

    /// <summary>Refuses values above 9.</summary>
    private sealed class Picky() : nn.Module<Tensor, Tensor>(nameof(Picky))
    {
        /// <inheritdoc/>
        public override Tensor forward(Tensor input)
            => input.max().item<double>() > 9 ? throw new ArgumentException("too large") : input;
    }
}
