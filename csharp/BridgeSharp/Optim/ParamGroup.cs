using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>A group of parameters with options of its own, under PyTorch's names.</summary>
/// <remarks>
/// An option that is not given is the optimizer's. A parameter that is listed twice counts once: TorchSharp lists a tied
/// one under both of its names. Spec: R9.8.
/// </remarks>
public abstract class ParamGroup : TorchSharp.Modules.ParamGroup, optim.ILearningRateController
{
    private protected ParamGroup(IEnumerable<Parameter> parameters, params ReadOnlySpan<(string Option, object? Value)> given)
    {
        Parameters = [.. parameters.Distinct<Parameter>(ReferenceEqualityComparer.Instance)];
        foreach (var (option, value) in given)
        {
            if (value is not null)
            {
                Values.Add(option, value);
            }
        }
    }

    /// <summary>The parameters.</summary>
    public new IReadOnlyList<Parameter> Parameters
    {
        get => (IReadOnlyList<Parameter>)base.Parameters;
        private init => base.Parameters = value;
    }

    /// <summary>The names of the parameters, where the optimizer was made with names.</summary>
    public IReadOnlyList<string>? param_names
    {
        get => Values.TryGetValue("param_names", out var names) ? ((IEnumerable<object>)names!).Cast<string>().ToList() : null;
        init => Values.Add("param_names", value!.Cast<object?>().ToList());
    }

    /// <summary>The learning rate.</summary>
    public double lr
    {
        get => Number("lr");
        set => Values["lr"] = value;
    }

    /// <summary>The learning rate.</summary>
    public new double LearningRate
    {
        get => lr;
        set => lr = value;
    }

    /// <summary>The rate that schedulers start from: the one of the first reading, which stays, as with PyTorch's schedulers.</summary>
    public new double InitialLearningRate
    {
        get
        {
            Values.TryAdd("initial_lr", Values["lr"]);
            return Number("initial_lr");
        }
        set => Values["initial_lr"] = value;
    }

    /// <summary>The options, in PyTorch's order.</summary>
    internal Options Values { get; private set; } = [];

    /// <summary>Read or change an option by PyTorch's name.</summary>
    /// <param name="option">The name.</param>
    /// <exception cref="KeyNotFoundException">The group does not have it.</exception>
    public object? this[string option]
    {
        get => Values[option];
        set => Values[option] = value;
    }

    /// <summary>Tell whether the group has an option.</summary>
    /// <param name="option">PyTorch's name.</param>
    /// <returns>Whether it does.</returns>
    public bool has(string option) => Values.ContainsKey(option);

    /// <summary>Take other options.</summary>
    internal void Take(Options values) => Values = values;

    /// <summary>Read a number.</summary>
    private protected double Number(string option) => (double)Values[option]!;

    /// <summary>Read a flag; a version that lacks it does as if it were false.</summary>
    private protected bool Flag(string option) => Values.GetValueOrDefault(option) is true;

    /// <summary>Read two numbers.</summary>
    private protected (double First, double Second) Pair(string option) => ((double, double))Values[option]!;

    /// <summary>Join two arguments, of which both are given or none.</summary>
    private protected static object? Two(string option, double? first, double? second) => (first, second) switch
    {
        (null, null) => null,
        ({ } one, { } other) => (one, other),
        _ => throw new ArgumentException($"ParamGroup: expected both numbers of {option}, got one"),
    };
}
