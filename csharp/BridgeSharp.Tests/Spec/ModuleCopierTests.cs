using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Copying modules of every kind.</summary>
[Collection(nameof(Serial))]
public sealed class ModuleCopierTests
{
    /// <summary>Modules in lists, dicts, sequences, arrays, dictionaries, tuples and closures are the copy's own. Spec: R4.1.</summary>
    [Fact]
    public void Containers_are_copied()
    {
        using var scope = NewDisposeScope();
        var model = new Containers();
        var inputs = randn(4, 2);
        var expected = model.call(inputs);

        var copy = replicate(model, [CPU, CPU])[1];
        Same.Trees(expected, copy.call(inputs));
        foreach (var parameter in model.parameters())
        {
            parameter.detach().zero_();
        }

        Same.Trees(expected, copy.call(inputs));
        Assert.Equal(model.named_parameters().Select(named => named.name), copy.named_parameters().Select(named => named.name));
        copy.call(inputs).sum().backward();
        Assert.All(copy.parameters(), parameter => Assert.NotNull(parameter.grad));
        Assert.All(model.parameters(), parameter => Assert.Null(parameter.grad));
    }

    /// <summary>Every common layer can be copied, computes the same and is in the mode of its original. Spec: R4.1, R4.2.</summary>
    [Fact]
    public void Layers_are_copied()
    {
        using var scope = NewDisposeScope();
        var model = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 2, 3, padding: 1), nn.GroupNorm(1, 2),
            nn.GELU(), nn.AvgPool2d(2), nn.Dropout(0.5), nn.Flatten(), nn.LayerNorm(18), nn.Linear(18, 4), nn.Sigmoid(), nn.Softmax(1));
        var inputs = randn(3, 1, 14, 14);
        model.call(inputs);
        model.eval();
        var expected = model.call(inputs);

        var copy = replicate(model, [CPU, CPU])[1];

        Assert.All(copy.modules(), module => Assert.False(module.training));
        Same.Trees(expected, copy.call(inputs));
        copy.train();
        Assert.False(model.training);
        Assert.True(copy.children().First().training);
    }

    /// <summary>A copy can be moved to another dtype as its original can. Spec: R4.1.</summary>
    [Fact]
    public void Copies_can_be_converted()
    {
        using var scope = NewDisposeScope();
        var copy = replicate(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), [CPU, CPU])[1].to(float64);

        Assert.All(copy.parameters(), parameter => Assert.Equal(float64, parameter.dtype));
        Assert.Equal(float64, copy.call(ones(2, 3, dtype: float64)).dtype);
    }

    /// <summary>What cannot be copied is refused by the name of its field. Spec: R4.1.</summary>
    [Fact]
    public void What_cannot_be_copied_is_named()
    {
        using var recurrent = new Recurrent();
        using var generator = new Generator(1);
        using var local = new ThreadLocal<int>();

        var native = Assert.Throws<NotSupportedException>(() => replicate(recurrent, [CPU, CPU]));
        Assert.Equal(
            "replicate: expected modules written in C#, got Recurrent.memory of type LSTM, whose parameters live in libtorch", native.Message);
        foreach (var (held, type) in new (object, string)[] { (Stream.Null, "NullStream"), (generator, "Generator"), (local, "ThreadLocal`1") })
        {
            using var opened = new Opened(held);
            var resource = Assert.Throws<NotSupportedException>(() => replicate(opened, [CPU, CPU]));
            Assert.Equal(
                $"replicate: expected fields that can be copied, got Opened.held of type {type}, which holds a native resource", resource.Message);
        }
    }
}
