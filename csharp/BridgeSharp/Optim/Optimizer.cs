using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>An optimizer in PyTorch's formula, order of operations, options and state.</summary>
/// <remarks>
/// It is a <c>torch.optim.Optimizer</c>, so TorchSharp's schedulers take it. What PyTorch refuses in the middle of a step
/// is refused before anything changes. Spec: R9.4 to R9.10. Source: torch/optim/optimizer.py
/// </remarks>
public abstract partial class Optimizer : optim.Optimizer, IStateful
{
    private readonly Schema schema;
    private readonly List<ParamGroup> groups = [];
    private readonly OrderedDictionary<Parameter, ParameterState> states = new(ReferenceEqualityComparer.Instance);

    private protected Optimizer(
        Schema schema, IEnumerable<ParamGroup> groups, IReadOnlyDictionary<string, object?> options, string reference)
        : base(0)
    {
        this.schema = schema;
        this.reference = reference;
        Defaults = schema.Complete(options, reference);
        foreach (var group in groups)
        {
            Add(group);
        }

        if (this.groups.Count == 0)
        {
            throw new ArgumentException("optimizer got an empty parameter list");
        }
    }

    /// <summary>Whose formulas: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</summary>
    public string reference { get; }

    /// <summary>The groups of parameters.</summary>
    public IReadOnlyList<ParamGroup> param_groups => groups;

    /// <inheritdoc/>
    public override IEnumerable<optim.ILearningRateController> ParamGroups => groups;

    /// <summary>The name of its class in PyTorch.</summary>
    internal string Name => schema.Name;

    /// <summary>Whether a step can fail half-way, as where it calls the user's code.</summary>
    internal virtual bool FailsHalfWay => false;

    /// <summary>The options of groups that do not set them.</summary>
    private protected Options Defaults { get; }

    /// <summary>Whether the formulas are those of PyTorch 1.13.</summary>
    private protected bool Old => reference == "1.13";

    /// <summary>Update the parameters that have a gradient.</summary>
    /// <param name="closure">Evaluates the model anew and returns the loss.</param>
    /// <returns>The closure's loss, or null.</returns>
    /// <exception cref="InvalidOperationException">A sparse gradient that the optimizer does not take.</exception>
    /// <exception cref="KeyNotFoundException">A state that lacks what an option needs.</exception>
    public override Tensor step(Func<Tensor>? closure = null)
    {
        Tensor? loss = null;
        if (closure is not null)
        {
            using var tracked = enable_grad();
            loss = closure();
        }

        using var untracked = no_grad();
        using var scope = NewDisposeScope();
        foreach (var (parameter, gradient, state, group) in groups.SelectMany(Prepared).ToList())
        {
            Update(parameter, gradient, state, group);
            if (state.Count > 0)
            {
                states[parameter] = state;
            }
        }

        return loss!;
    }

    /// <summary>Drop the gradients: they are None afterwards, as in PyTorch.</summary>
    public override void zero_grad() => zero_grad(set_to_none: true);

    /// <summary>Drop the gradients, or fill them with zeros.</summary>
    /// <param name="set_to_none">Whether they are None afterwards.</param>
    public void zero_grad(bool set_to_none)
    {
        using var untracked = no_grad();
        foreach (var parameter in parameters())
        {
            if (set_to_none)
            {
                parameter.grad = null;
                continue;
            }

            using var gradient = parameter.grad;
            gradient?.detach_().zero_();
        }
    }

    /// <summary>Update one parameter.</summary>
    private protected abstract void Update(Parameter parameter, Tensor gradient, ParameterState state, ParamGroup group);

    /// <summary>Say what a state starts with; what makes a tensor detaches it.</summary>
    private protected virtual IEnumerable<(string Name, Func<object?> Make)> Start(Parameter parameter, Tensor gradient, ParamGroup group) => [];

    /// <summary>Say why a gradient is refused, if it is.</summary>
    private protected virtual string? Refusal(Tensor gradient, ParamGroup group)
        => gradient.is_sparse ? $"{schema.Name} does not support sparse gradients" : null;

    /// <summary>Give a parameter its state before its first step.</summary>
    private protected void Begin(Parameter parameter, ParamGroup group)
    {
        var state = new ParameterState();
        Fill(state, Start(parameter, parameter, group));
        states[parameter] = state;
    }

    /// <summary>Find the state of a parameter, which is empty at first.</summary>
    private protected ParameterState StateOf(Parameter parameter)
    {
        if (!states.TryGetValue(parameter, out var state))
        {
            states[parameter] = state = [];
        }

        return state;
    }

    /// <inheritdoc/>
    protected override void Dispose(bool disposing)
    {
        if (disposing)
        {
            foreach (var state in states.Values)
            {
                state.Dispose();
            }
        }

        base.Dispose(disposing);
    }

    /// <summary>List what a step of a group needs, and refuse what it cannot do.</summary>
    private List<(Parameter Parameter, Tensor Gradient, ParameterState State, ParamGroup Group)> Prepared(ParamGroup group)
    {
        List<(Parameter, Tensor, ParameterState, ParamGroup)> result = [];
        foreach (var parameter in group.Parameters)
        {
            if (parameter.grad is not { } gradient)
            {
                continue;
            }

            if (Refusal(gradient, group) is { } reason)
            {
                throw new InvalidOperationException(reason);
            }

            var state = states.TryGetValue(parameter, out var held) ? held : [];
            var start = Start(parameter, gradient, group).ToList();
            if (state.Count == 0)
            {
                Fill(state, start);
            }

            if (start.FirstOrDefault(entry => state.GetValueOrDefault(entry.Name) is null).Name is { } missing)
            {
                throw new KeyNotFoundException($"{schema.Name}: expected {missing} in the state of parameter {Index(parameter)}, got {string.Join(", ", state.Keys)}");
            }

            result.Add((parameter, gradient, state, group));
        }

        return result;
    }

    private static void Fill(ParameterState state, IEnumerable<(string Name, Func<object?> Make)> start)
    {
        foreach (var (name, make) in start)
        {
            state[name] = make();
        }
    }
}
