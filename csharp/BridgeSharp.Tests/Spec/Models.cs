using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Two layers of one weight, a batch norm, a counter and a scratch buffer that is not persistent.</summary>
internal sealed class Tied : nn.Module<Tensor, Tensor>
{
    /// <summary>Tie the weights of the layers.</summary>
    public Tied()
        : base(nameof(Tied))
    {
        First = nn.Linear(3, 3);
        Second = nn.Linear(3, 3);
        Second.weight = First.weight;
        Norm = nn.BatchNorm1d(3);
        register_module("first", First);
        register_module("second", Second);
        register_module("norm", Norm);
        register_buffer("counter", tensor(7L));
        register_buffer("scratch", ones(2), persistent: false);
    }

    /// <summary>The first layer.</summary>
    public Linear First { get; }

    /// <summary>The second layer.</summary>
    public Linear Second { get; }

    /// <summary>The batch norm.</summary>
    public BatchNorm1d Norm { get; }

    /// <summary>The buffer that no state dict has.</summary>
    public Tensor Scratch => _internal_buffers["scratch"].Item1;

    /// <inheritdoc/>
    public override Tensor forward(Tensor input) => Norm.call(Second.call(First.call(input)));
}

/// <summary>Predicts the next of seven words; the output layer has the weight of the embedding.</summary>
internal sealed class Language : nn.Module<Tensor, Tensor>
{
    private readonly Embedding embedding = nn.Embedding(7, 3);
    private readonly Linear output = nn.Linear(3, 7);

    /// <summary>Tie the weights.</summary>
    public Language()
        : base(nameof(Language))
    {
        output.weight = embedding.weight!;
        RegisterComponents();
    }

    /// <inheritdoc/>
    public override Tensor forward(Tensor input) => output.call(embedding.call(input));
}

/// <summary>Holds modules in every way that C# has: containers of TorchSharp's and of .NET's, fields, a closure.</summary>
internal sealed class Containers : nn.Module<Tensor, Tensor>
{
    private readonly ModuleList<Linear> list = nn.ModuleList(nn.Linear(2, 2), nn.Linear(2, 2));
    private readonly ModuleDict<Linear> dict = nn.ModuleDict(("a", nn.Linear(2, 2)));
    private readonly Sequential stack = nn.Sequential(("in", nn.Linear(2, 2)), ("act", nn.Tanh()), ("out", nn.Sequential(nn.Linear(2, 2))));
    private readonly Linear[] array = [nn.Linear(2, 2), nn.Linear(2, 2)];
    private readonly Dictionary<string, Linear> named = new(StringComparer.OrdinalIgnoreCase) { ["Key"] = nn.Linear(2, 2) };
#pragma warning disable CA1814 // A user may have one.
    private readonly Linear[,] grid = { { nn.Linear(2, 2), nn.Linear(2, 2) }, { nn.Linear(2, 2), nn.Linear(2, 2) } };
#pragma warning restore CA1814
    private readonly HashSet<Linear> set = [nn.Linear(2, 2)];
    private readonly (Linear Inner, double Scale) pair = (nn.Linear(2, 2), 0.5);
    private readonly Func<Tensor, Tensor> closure;

    /// <summary>Register what is in containers of .NET's.</summary>
    public Containers()
        : base(nameof(Containers))
    {
        RegisterComponents();
        foreach (var (name, module) in Held())
        {
            register_module(name, module);
        }

        closure = input => array[0].call(input) * pair.Scale;
    }

    /// <inheritdoc/>
    public override Tensor forward(Tensor input)
    {
        var output = closure(input);
        foreach (var module in list.Concat([dict["a"], array[1], named["KEY"], .. set, grid[0, 0], grid[0, 1], grid[1, 0], grid[1, 1], pair.Inner]))
        {
            output = module.call(output) + input;
        }

        return stack.call(output);
    }

    private IEnumerable<(string Name, nn.Module Module)> Held()
        => [("array0", array[0]), ("array1", array[1]), ("named", named["Key"]), ("set", set.Single()), ("pair", pair.Inner),
            .. grid.Cast<Linear>().Select((module, i) => ($"grid{i}", (nn.Module)module))];
}

/// <summary>Takes two arguments: what it scales, and by what.</summary>
internal sealed class Scaled : nn.Module<Tensor, Tensor, Tensor>
{
    /// <summary>Start with a weight of one.</summary>
    public Scaled()
        : base(nameof(Scaled)) => RegisterComponents();

    /// <summary>The weight.</summary>
    public Parameter Weight => (Parameter)_internal_params["weight"];

    /// <inheritdoc/>
    public override Tensor forward(Tensor input1, Tensor input2) => input1 * input2 * Weight;

    /// <inheritdoc/>
    protected override void RegisterComponents() => register_parameter("weight", new Parameter(ones(1)));
}
