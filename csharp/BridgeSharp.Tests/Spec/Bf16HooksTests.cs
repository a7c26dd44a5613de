using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>How mixed precision comes into TorchSharp's layers.</summary>
[Collection(nameof(Serial))]
public sealed class Bf16HooksTests
{
    /// <summary>Hooks see the layer's input and its result in float32, or are refused. Spec: R18.2, R18.5.</summary>
    [Fact]
    public void Hooks()
    {
        using var scope = NewDisposeScope();
        var layer = nn.Linear(3, 2);
        List<Tensor> seen = [];
        layer.register_forward_pre_hook((_, input) => Seen(input));
        var input = randn(4, 3);

        mixed_precision(layer).register_forward_hook((_, before, after) =>
        {
            seen.Add(before);
            return Seen(after);
        });
        var output = layer.call(input);

        Same.Trees(new List<Tensor> { input, input, output }, seen);

        layer.register_forward_pre_hook((_, given) => given);
        var late = Assert.Throws<InvalidOperationException>(() => layer.call(input));
        Assert.Equal("mixed_precision: expected forward pre-hooks of Linear to be registered before, got 1 registered afterwards", late.Message);

        var early = nn.Linear(3, 2);
        early.register_forward_hook((_, _, after) => after);
        Assert.Equal(
            "mixed_precision: expected forward hooks of fc to be registered afterwards, got 1 registered before",
            Assert.Throws<ArgumentException>(() => mixed_precision(nn.Sequential(("fc", early)))).Message);

        Tensor Seen(Tensor value)
        {
            seen.Add(value);
            return value;
        }
    }

    /// <summary>Code that passes the hooks by is found, in lambdas and base classes too, and named. Spec: R18.5.</summary>
    [Fact]
    public void Forward_is_refused()
    {
        using var scope = NewDisposeScope();
        foreach (var (model, method) in new (nn.Module, string)[] { (new Direct(), "Direct.forward"), (new Inherited(), "Direct.forward"), (new InLambda(), "InLambda.forward") })
        {
            var error = Assert.Throws<ArgumentException>(() => mixed_precision(model));
            Assert.StartsWith($"mixed_precision: expected layers to be run by call, got forward in {method}", error.Message);
        }
    }

    /// <summary>A step leaves no tensor behind but its results. Spec: R18.2.</summary>
    [Fact]
    public void Nothing_is_left()
    {
        using var outer = NewDisposeScope();
        var model = mixed_precision(nn.Sequential(nn.Linear(3, 2), nn.Flatten(), nn.Linear(2, 1)));
        var input = randn(4, 3);
        var before = Same.Live();
        using (NewDisposeScope())
        {
            model.call(input).sum().backward();
            model.zero_grad();
        }

        Assert.Equal(before, Same.Live());
    }

    private class Direct : nn.Module<Tensor, Tensor>
    {
        private readonly Linear fc = nn.Linear(2, 2);

        public Direct()
            : base(nameof(Direct)) => RegisterComponents();

        public override Tensor forward(Tensor input) => fc.forward(input);
    }

    private sealed class Inherited : Direct;

    private sealed class InLambda : nn.Module<Tensor, Tensor>
    {
        private readonly ModuleList<nn.Module<Tensor, Tensor>> layers = new(nn.Linear(2, 2), nn.Linear(2, 2));

        public InLambda()
            : base(nameof(InLambda)) => RegisterComponents();

        public override Tensor forward(Tensor input) => layers.Aggregate(input, (x, layer) => layer.forward(x));
    }
}
