using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

#pragma warning disable CA1001, CA1812, CA2007, CA2213 // Written as people write ports, and made by reflection.

/// <summary>Runs its children by <c>forward</c>.</summary>
internal sealed class PortOfChildren : nn.Module<Tensor, Tensor>
{
    private readonly Linear fc1 = nn.Linear(3, 4);
    private readonly ReLU act = nn.ReLU(inplace: true);
    private readonly Dropout drop = nn.Dropout(0.5);
    private readonly Linear fc2 = nn.Linear(4, 3);

    public PortOfChildren()
        : base("port") => RegisterComponents();

    public override Tensor forward(Tensor input) => fc2.forward(drop.forward(act.forward(fc1.forward(input))));
}

/// <summary>Goes through a list of layers.</summary>
internal sealed class PortOfList : nn.Module<Tensor, Tensor>
{
    private readonly ModuleList<nn.Module<Tensor, Tensor>> layers = nn.ModuleList<nn.Module<Tensor, Tensor>>(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3));

    public PortOfList()
        : base("port") => RegisterComponents();

    public override Tensor forward(Tensor input)
    {
        foreach (var layer in layers)
        {
            input = layer.forward(input);
        }

        return input;
    }
}

/// <summary>Holds one layer three times.</summary>
internal sealed class PortOfThree : nn.Module<Tensor, Tensor>
{
    private readonly Linear first = nn.Linear(3, 3);
    private readonly Linear second;
    private readonly Linear third;

    public PortOfThree()
        : base("port")
    {
        (second, third) = (first, first);
        RegisterComponents();
    }

    public override Tensor forward(Tensor input) => third.forward(second.forward(first.forward(input)));
}

/// <summary>Registers nothing: layers in an array of a class of its own, a weight as a plain tensor.</summary>
internal sealed class PortOfFields : nn.Module<Tensor, Tensor>
{
    private readonly Tensor weight = randn(3).requires_grad_();
    private readonly Tensor mask = ones(3);
    private readonly Block[] blocks = [new(), new()];

    public PortOfFields()
        : base("port")
    {
    }

    public override Tensor forward(Tensor input)
    {
        foreach (var block in blocks)
        {
            input = block.Run(input);
        }

        return input * weight * mask;
    }

    private sealed class Block
    {
        private readonly Linear fc = nn.Linear(3, 3);

        public Tensor Run(Tensor input) => fc.forward(input);
    }
}

/// <summary>Runs layers from a static method, a function, a generic method, an iterator, an asynchronous method and an interface.</summary>
internal sealed class PortOfHelpers : nn.Module<Tensor, Tensor>
{
    private readonly Linear a = nn.Linear(3, 3);
    private readonly Linear b = nn.Linear(3, 3);
    private readonly Linear c = nn.Linear(3, 3);
    private readonly Linear d = nn.Linear(3, 3);
    private readonly Linear e = nn.Linear(3, 3);
    private readonly Inner f = new();
    private readonly Sequential g = nn.Sequential(("fc", nn.Linear(3, 3)), ("act", nn.Sigmoid()));
    private readonly Func<Tensor, Tensor> run;

    public PortOfHelpers()
        : base("port")
    {
        RegisterComponents();
        run = c.forward;
    }

    private interface IInner
    {
        Tensor forward(Tensor input);
    }

    public override Tensor forward(Tensor input)
    {
        Func<Tensor, Tensor> own = value => b.forward(value);
        var rest = Iterate(d, run(own(Static(a, input)))).Single();
        return g.forward(Interface(f, Later(rest).GetAwaiter().GetResult()));
    }

    private static Tensor Static(Linear layer, Tensor input) => layer.forward(input.sum().item<float>() > 1e9 ? input : input + 1);

    private static Tensor Generic<T>(T layer, Tensor input)
        where T : nn.Module<Tensor, Tensor>
        => layer.forward(input);

    private static IEnumerable<Tensor> Iterate(Linear layer, Tensor input)
    {
        yield return Generic(layer, input);
    }

    private static Tensor Interface<T>(T layer, Tensor input)
        where T : IInner
        => layer.forward(input);

    private async Task<Tensor> Later(Tensor input)
    {
        await Task.CompletedTask;
        return e.forward(input);
    }

    private sealed class Inner : nn.Module<Tensor, Tensor>, IInner
    {
        private readonly Linear fc = nn.Linear(3, 3);

        public Inner()
            : base("inner") => RegisterComponents();

        public override Tensor forward(Tensor input) => fc.forward(input);
    }
}

/// <summary>Has a layer of two arguments and two results, and one that calls itself.</summary>
internal sealed class PortOfPairs : nn.Module<Tensor, Tensor>
{
    private readonly Bilinear both = nn.Bilinear(3, 3, 3);
    private readonly Splitter split = new();

    public PortOfPairs()
        : base("port") => RegisterComponents();

    public override Tensor forward(Tensor input)
    {
        var (left, right) = split.forward(input, 2);
        return both.forward(left, right);
    }

    private sealed class Splitter : nn.Module
    {
        private readonly Linear fc = nn.Linear(3, 3);

        public Splitter()
            : base("splitter") => RegisterComponents();

        public (Tensor Left, Tensor Right) forward(Tensor input, int times)
            => times > 1 ? this.forward(input * times, times - 1) : (fc.forward(input), input + fc.bias!);
    }
}
#pragma warning restore CA1001, CA1812, CA2007, CA2213
