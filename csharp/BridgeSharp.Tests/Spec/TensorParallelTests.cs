using System.Text.Json;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>A layer in parts is the whole layer.</summary>
[Collection(nameof(Serial))]
public sealed class TensorParallelTests
{
    private static readonly Dictionary<string, Func<nn.Module, Device[], SplitLayer>> Kinds = new()
    {
        ["ColumnParallelLinear"] = (layer, devices) => new ColumnParallelLinear((Linear)layer, devices),
        ["RowParallelLinear"] = (layer, devices) => new RowParallelLinear((Linear)layer, devices),
        ["ChannelParallelConv2d"] = (layer, devices) => new ChannelParallelConv2d((Conv2d)layer, devices),
    };

    public static TheoryData<string> Cases => Vectors.Names("tensor_parallel");

    /// <summary>Parts, outputs, gradients and refusals are those of the vectors. Spec: R24.4, R24.5, R24.6.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("tensor_parallel", name);
        var whole = Whole(entry);
        Vectors.Check(entry, () =>
        {
            var layer = Kinds[entry.GetProperty("layer").GetString()!](whole, Cpus(entry.GetProperty("devices").GetInt32()));
            Assert.Equal(entry.Items("sizes").Select(size => size.GetInt64()), layer.parts.Select(part => Weight(part).size(layer.dim)));
            Same.Trees(StateDict.Of(whole), whole_state(layer));
            var inputs = Read(entry, "inputs")!.requires_grad_();
            var outputs = layer.call(inputs);
            outputs.backward([Read(entry, "upstream")!]);
            Same.Trees(Read(entry, "expected"), outputs.detach());
            var expected = entry.Members("gradients").ToDictionary(own => own.Name, own => Vectors.Tree(own.Value));
            expected.Remove("inputs", out var gradient);
            Same.Trees(gradient, inputs.grad);
            Same.Trees(expected, whole_state(layer, gradients: true));
        });
    }

    /// <summary>Outputs, gradients and state, under their names and in order, are the whole's. Spec: R24.4, R24.6.</summary>
    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(3)]
    [InlineData(5)]
    public void Network_is_the_undivided_one(int parts)
    {
        using var scope = NewDisposeScope();
        var (whole, split) = Networks(Cpus(parts));
        Same.Trees(StateDict.Of(whole), whole_state(split));
        var inputs = randn(4, 3, 8, 8, dtype: float64).requires_grad_();
        var others = inputs.detach().clone().requires_grad_();
        split.call(inputs).square().sum().backward();
        whole.call(others).square().sum().backward();
        var (actual, expected) = (whole_state(split, gradients: true), whole_state(whole, gradients: true));
        Assert.Equal(expected.Keys, actual.Keys);
        (actual["inputs"], expected["inputs"]) = (inputs.grad!, others.grad!);
        var largest = expected.Values.Max(Largest);
        Assert.All(expected, own => Assert.True(Largest(actual[own.Key] - own.Value) <= 1e-12 * largest, own.Key));
    }

    /// <summary>Parts are copies, frozen where the whole is, and nothing is drawn. Spec: R24.6.</summary>
    [Fact]
    public void Whole_layer_stays_as_it_is()
    {
        using var scope = NewDisposeScope();
        nn.Module[] layers = [nn.Linear(4, 6).to(float64), nn.Linear(4, 6).to(float64), nn.Conv2d(2, 3, 3L).to(float64)];
        foreach (var (whole, kind) in layers.Zip(Kinds.Values))
        {
            Weight(whole).requires_grad_(false);
            var before = StateDict.Of(whole).ToDictionary(own => own.Key, own => own.Value.detach().clone());
            var random = get_rng_state();
            var layer = kind(whole, Cpus(2));
            Assert.Equal(Same.Bits(random), Same.Bits(get_rng_state()));
            Assert.All(layer.named_parameters(), own => Assert.Equal(own.name.EndsWith("bias", StringComparison.Ordinal), own.parameter.requires_grad));
            foreach (var parameter in layer.parameters())
            {
                parameter.detach().zero_();
            }

            Same.Trees(before, StateDict.Of(whole).ToDictionary(own => own.Key, own => own.Value));
        }
    }

    /// <summary>Images without N, and inputs of any rank, are taken as by the whole layer. Spec: R24.4.</summary>
    [Fact]
    public void One_sample_and_more_dimensions()
    {
        using var scope = NewDisposeScope();
        var (linear, image) = (nn.Linear(4, 6).to(float64), nn.Conv2d(2, 3, 3L).to(float64));
        Check(linear, new ColumnParallelLinear(linear, Cpus(2)), 2, 3, 4);
        Check(linear, new RowParallelLinear(linear, Cpus(2)), 4);
        Check(image, new ChannelParallelConv2d(image, Cpus(2)), 2, 5, 5);

        static void Check(nn.Module<Tensor, Tensor> whole, SplitLayer layer, params long[] shape)
        {
            var input = randn(shape, dtype: float64);
            Same.Within(whole.call(input).detach(), layer.call(input).detach(), 1e-12);
        }
    }

    /// <summary>A forward leaves nothing but its outputs, and a disposed layer no part. Spec: R24.4.</summary>
    [Fact]
    public void Nothing_is_left()
    {
        foreach (var (name, kind) in Kinds)
        {
            var convolution = name == "ChannelParallelConv2d";
            using nn.Module whole = convolution ? nn.Conv2d(2, 3, 3L) : nn.Linear(4, 6);
            using var inputs = convolution ? ones(1, 2, 5, 5) : ones(3, 4);
            var layer = kind(whole, Cpus(2));
            var (before, own) = (Same.Live(), layer.parameters().Count());
            using (var outputs = layer.call(inputs))
            {
                Assert.Equal(before + 1, Same.Live());
            }

            layer.Dispose();
            Assert.Equal(before - own, Same.Live());
        }
    }

    /// <summary>Each part is on its GPU, and the outputs on the first. Spec: R24.4.</summary>
    [Fact]
    public void Parts_are_on_their_gpus()
    {
        Assert.SkipUnless(cuda.is_available() && cuda.device_count() > 1, "no two GPUs here");
        using var scope = NewDisposeScope();
        foreach (var kind in Kinds.Values.Take(2))
        {
            var layer = kind(nn.Linear(4, 6), [device("cuda:0"), device("cuda:1")]);
            Assert.Equal([0, 1], layer.parts.Select(part => Weight(part).device_index));
            Assert.Equal(0, layer.call(randn(3, 4, device: device("cuda:0"))).device_index);
        }
    }

    /// <summary>Make a network in float64, and the same with its layers split.</summary>
    private static (Sequential Whole, Sequential Split) Networks(Device[] devices)
    {
        random.manual_seed(3);
        var first = nn.Conv2d(3, 7, 3, stride: 2, padding: 2, dilation: 2, padding_mode: PaddingModes.Reflect).to(float64);
        var second = nn.Conv2d(7, 5, 3, Padding.Same, bias: false).to(float64);
        var (third, last) = (nn.Linear(80, 11, hasBias: false).to(float64), nn.Linear(11, 5).to(float64));
        return (
            nn.Sequential(first, nn.BatchNorm2d(7).to(float64), second, nn.Flatten(), third, nn.Tanh(), last),
            nn.Sequential(
                new ChannelParallelConv2d(first, devices),
                nn.BatchNorm2d(7).to(float64),
                new ChannelParallelConv2d(second, devices),
                nn.Flatten(),
                new ColumnParallelLinear(third, devices),
                nn.Tanh(),
                new RowParallelLinear(last, devices)));
    }

    /// <summary>Make the whole layer of a case.</summary>
    private static nn.Module Whole(JsonElement entry)
    {
        var (weight, bias) = (Read(entry, "weight")!, Read(entry, "bias"));
        if (weight.dim() == 2)
        {
            return nn.Linear(new Parameter(weight), bias is null ? null : new Parameter(bias));
        }

        var groups = entry.Optional("groups")?.GetInt64() ?? 1;
        var layer = nn.Conv2d(weight.size(1) * groups, weight.size(0), 1L, groups: groups, bias: false);
        layer.weight = new Parameter(weight);
        layer.bias = bias is null ? null : new Parameter(bias);
        return layer;
    }

    private static Parameter Weight(nn.Module layer) => layer.get_parameter("weight")!;

    private static double Largest(Tensor values) => values.abs().max().item<double>();

    private static Tensor? Read(JsonElement entry, string name) => (Tensor?)Vectors.Tree(entry.GetProperty(name));

    private static Device[] Cpus(int count) => [.. Enumerable.Repeat(CPU, count)];
}
