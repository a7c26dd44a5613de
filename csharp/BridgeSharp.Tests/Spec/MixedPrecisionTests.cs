using System.Text.Json;
using BridgeSharp.Models;
using BridgeSharp.Parallel;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;
using functional = TorchSharp.torch.nn.functional;

namespace BridgeSharp.Tests.Spec;

/// <summary>Mixed precision: products in bfloat16, all else in float32.</summary>
[Collection(nameof(Serial))]
public sealed class MixedPrecisionTests
{
    public static TheoryData<string> Cases => Vectors.Names("mixed_precision");

    public static TheoryData<string> Lists => Vectors.Names("mixed_precision_layers");

    /// <summary>Results, states and refusals are those of the vectors. Spec: R18.2, R18.3, R18.6.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("mixed_precision", name);
        Vectors.Check(entry, () =>
        {
            if (entry.Optional("model") is { } layers)
            {
                var model = new LayerTree(layers).to(Vectors.Dtypes[entry.Optional("dtype")?.GetString() ?? "float32"]);
                Assert.Same(model, mixed_precision(model));
                return;
            }

            var layer = mixed_precision(LayerTree.Layer(entry));
            var dtype = entry.Optional("dtypes")?.Optional("input")?.GetString() ?? "float32";
            var input = Vectors.Tensor(entry.GetProperty("operands").GetProperty("input"), dtype);
            (entry.Optional("losses") is null ? (Action<JsonElement, nn.Module<Tensor, Tensor>, Tensor>)CheckResult : CheckTraining)(entry, layer, input);
        });
    }

    /// <summary>The lists are those of the vectors, and TorchSharp's names. Spec: R18.2, R18.3.</summary>
    [Theory]
    [MemberData(nameof(Lists))]
    public void Lists_are_those_of_the_vectors(string name)
    {
        var layers = Vectors.Find("mixed_precision_layers", name).Items("layers").Select(item => item.GetString()!).ToHashSet();
        var own = name switch
        {
            "bfloat16" => MixedPrecision.Products,
            "float32" => MixedPrecision.Float32,
            _ => (IEnumerable<string>)MixedPrecision.Inside,
        };
        var known = typeof(nn.Module).Assembly.GetExportedTypes().Select(type => type.Name.Split('`')[0]).ToHashSet();

        Assert.Equal(layers.Order(), own.Order());
        Assert.All(layers, layer => Assert.Contains(new[] { "", "1d", "2d" }, axes => known.Contains(layer + axes)));
    }

    /// <summary>A padding mode gives what the same layer gives on an input so padded. Spec: R18.2.</summary>
    [Theory]
    [InlineData(PaddingModes.Reflect)]
    [InlineData(PaddingModes.Replicate)]
    [InlineData(PaddingModes.Circular)]
    public void Padding_modes(PaddingModes mode)
    {
        using var scope = NewDisposeScope();
        var layer = mixed_precision(nn.Conv2d(2, 3, (3, 3), padding: (1, 2), padding_mode: mode));
        var plain = mixed_precision(nn.Conv2d(2, 3, 3L));
        StateDict.Load(plain, StateDict.Of(layer));
        var input = randn(2, 2, 5, 6);

        Same.Trees(plain.call(functional.pad(input, [2, 2, 1, 1], mode)), layer.call(input));
    }

    /// <summary>A batch of no samples has a result of none. Spec: R18.2.</summary>
    [Fact]
    public void No_sample()
    {
        using var scope = NewDisposeScope();

        Assert.Equal([0, 10], mixed_precision(new LeNet()).call(ones(0, 1, 28, 28)).shape);
    }

    /// <summary>Names, parameters, gradients and a second call: nothing else changes. Spec: R18.2.</summary>
    [Fact]
    public void All_else_stays()
    {
        using var scope = NewDisposeScope();
        var model = new LeNet();
        var plain = new LeNet();
        var before = StateDict.Of(model).ToList();

        mixed_precision(mixed_precision(model));

        Assert.Equal(before, StateDict.Of(model));
        StateDict.Load(plain, StateDict.Of(model));
        var input = randn(3, 1, 28, 28);
        var output = model.call(input);
        output.sum().backward();
        Assert.All(model.parameters(), parameter => Assert.Equal(float32, parameter.grad!.dtype));
        var expected = plain.call(input);
        var difference = (output - expected).abs().max().item<float>();
        Assert.InRange(difference, float.Epsilon, expected.abs().max().item<float>() / 32);
    }

    /// <summary>Replicas compute as the model does, also after it is disposed. Spec: R18.2.</summary>
    [Fact]
    public void Copies_are_mixed_too()
    {
        using var scope = NewDisposeScope();
        var model = mixed_precision(nn.Sequential(nn.Conv1d(1, 2, 3L), nn.ReLU(), nn.Flatten()));
        var input = randn(4, 1, 7);
        var expected = model.call(input);

        var copy = replicate(model, [CPU, CPU])[1];
        model.Dispose();

        Same.Trees(expected, copy.call(input));
    }

    /// <summary>Several replicas differ from one by roundings of bfloat16 only. Spec: R18.2, R8.1.</summary>
    [Fact]
    public void Replicas_train_as_one()
    {
        using var scope = NewDisposeScope();
        var states = new[] { 1, 1, 3 }.Select(Train).ToList();

        Same.Trees(states[0], states[1]);
        foreach (var (one, several) in states[0].Zip(states[2]))
        {
            Same.Within(one, several, 1.0 / 256);
        }

        static List<Tensor> Train(int count)
        {
            random.manual_seed(0);
            var model = mixed_precision(nn.Sequential(nn.Linear(6, 11), nn.Tanh(), nn.Linear(11, 4)));
            using var optimizer = new Optim.SGD(model.parameters(), lr: 0.1);
            using var trainer = new Trainer(model, optimizer, (outputs, targets) => functional.cross_entropy(outputs, targets), [.. Enumerable.Repeat(CPU, count)]);
            for (var step = 0; step < 3; step++)
            {
                trainer.step(randn(16, 6), randint(0, 4, [16]));
            }

            return [.. StateDict.Of(model).Values];
        }
    }

    /// <summary>A class of the user's own is taken, one derived from a product is not. Spec: R18.3.</summary>
    [Fact]
    public void Derived_layers()
    {
        using var scope = NewDisposeScope();
        var block = new LayerTree(("fc", nn.Linear(2, 2)));

        Assert.Equal(
            "mixed_precision: expected layers of known precision, got 1 of type Own, derived from Convolution, which is on no list of what is bfloat16 and what float32",
            Assert.Throws<ArgumentException>(() => mixed_precision(new LayerTree(("0", block), ("1", new Own())))).Message);
        mixed_precision(block);
    }

    private static void CheckResult(JsonElement entry, nn.Module<Tensor, Tensor> layer, Tensor input)
    {
        var output = layer.call(input.requires_grad_());
        Same.Trees(Vectors.Tensor(entry.GetProperty("expected"), "float32"), output.detach());
        var actual = autograd.grad([output], [input, .. layer.parameters()], [Vectors.Tensor(entry.GetProperty("gradient"), "float32")]);
        Same.Trees(entry.Members("gradients").Select(part => Vectors.Tensor(part.Value, "float32")).ToList(), actual.ToList());
    }

    private static void CheckTraining(JsonElement entry, nn.Module<Tensor, Tensor> layer, Tensor input)
    {
        using var optimizer = new Optim.SGD(layer.parameters(), entry.GetProperty("lr").GetDouble());
        using var trainer = new Trainer(layer, optimizer, (outputs, targets) => functional.mse_loss(outputs, targets));
        var targets = Vectors.Tensor(entry.GetProperty("targets"), "float32");
        Assert.All(entry.Items("losses"), loss => Assert.Equal(loss.GetDouble(), trainer.step(input, targets)));
        Same.Trees(
            entry.Members("trained").Select(part => Vectors.Tensor(part.Value, "float32")).ToList(),
            trainer.state_dict().Values.Select(value => value.detach()).ToList());
    }

    /// <summary>A convolution whose forward may be anything.</summary>
    private sealed class Own() : Convolution(nameof(Own), 1, 1, [1], [1], [0], null, [1], false, [0], 1, true, PaddingModes.Zeros)
    {
        public override Tensor forward(Tensor input) => input;
    }
}
