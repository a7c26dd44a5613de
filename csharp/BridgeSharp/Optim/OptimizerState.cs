using System.Collections;
using BridgeSharp.Parallel;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <content>The state, in PyTorch's structure.</content>
public abstract partial class Optimizer
{
    /// <summary>Entries of one number, which PyTorch 1.13 and earlier had as numbers.</summary>
    private static readonly HashSet<string> Numbers = ["step", "mu_product", "eta", "mu"];

    /// <summary>Whether <c>step</c> is a number, not a tensor.</summary>
    private protected virtual bool PlainStep => false;

    /// <summary>Whether the tensors of a state have the shape of their parameter.</summary>
    private protected virtual bool StatesAreShaped => true;

    /// <summary>Return the state in PyTorch's structure: <c>state</c> by the index of the parameter, and <c>param_groups</c>.</summary>
    /// <remarks>
    /// Dicts are dictionaries in PyTorch's order, lists are <c>List&lt;object?&gt;</c>, indices <c>long</c>, numbers
    /// <c>double</c> or <c>long</c>, pairs tuples. A parameter that was never updated has no state. Spec: R9.9.
    /// </remarks>
    /// <returns>A new structure; its tensors are the optimizer's own, until it takes another state or is disposed.</returns>
    public OrderedDictionary<string, object?> state_dict()
    {
        var indices = Indices();
        var state = new OrderedDictionary<long, object?>();
        foreach (var (parameter, entries) in states)
        {
            state.Add(indices[parameter], Copy(entries));
        }

        var packed = new List<object?>();
        foreach (var group in groups)
        {
            var entries = Copy(group.Values);
            entries.Add("params", group.Parameters.Select(parameter => (object?)indices[parameter]).ToList());
            packed.Add(entries);
        }

        return new() { ["state"] = state, ["param_groups"] = packed };
    }

    /// <summary>Take a state in PyTorch's structure, as either language wrote it.</summary>
    /// <remarks>
    /// Tensors are copied, in the dtype and on the device of their parameter, but for <c>step</c>. Options that an earlier
    /// PyTorch lacked get their defaults. Nothing changes where it raises. Spec: R9.9.
    /// </remarks>
    /// <param name="state_dict">As <see cref="state_dict"/> returns it; keys of <c>state</c> and lists may have any type of theirs.</param>
    /// <exception cref="ArgumentException">Another number of groups or parameters, or an entry of another type or shape.</exception>
    /// <exception cref="KeyNotFoundException">A part or an option is missing.</exception>
    public void load_state_dict(IDictionary state_dict) => Load(state_dict, exact: false);

    /// <inheritdoc/>
    object? IStateful.state_dict() => state_dict();

    /// <summary>Take a state whose tensors keep their dtypes, so that every bit is as it was.</summary>
    void IStateful.load_state_dict(object? state) => Load((IDictionary)state!, exact: true);

    private void Load(IDictionary state_dict, bool exact)
    {
        var saved = ((IEnumerable)Part(state_dict, "param_groups")).Cast<IDictionary>().ToList();
        if (saved.Count != groups.Count)
        {
            throw new ArgumentException("loaded state dict has a different number of parameter groups");
        }

        var ids = saved.ConvertAll(group => ((IEnumerable)Part(group, "params")).Cast<object>().Select(id => Convert.ToInt64(id, null)).ToList());
        if (ids.Zip(groups).Any(pair => pair.First.Count != pair.Second.Parameters.Count))
        {
            throw new ArgumentException("loaded state dict contains a parameter group that doesn't match the size of optimizer's group");
        }

        var values = saved.Zip(groups).Select((pair, index) => Loaded(pair.First, pair.Second, index)).ToList();
        var taken = Loaded((IDictionary)Part(state_dict, "state"), ids, values, exact);
        Replace(taken, values);
    }

    /// <summary>Take options and states of another optimizer of the same class, exactly.</summary>
    internal void Take(Optimizer source)
    {
        using var untracked = no_grad();
        var own = parameters().ToList();
        var indices = source.Indices();
        List<(Parameter, ParameterState)> taken = [];
        foreach (var (parameter, entries) in source.states)
        {
            var state = new ParameterState();
            foreach (var (name, value) in entries)
            {
                state[name] = Cloned(value, tensor => tensor);
            }

            taken.Add((own[(int)indices[parameter]], state));
        }

        Replace(taken, source.groups.ConvertAll(group => Copy(group.Values)));
    }

    private static object Part(IDictionary holder, string name) => holder[name]
        ?? throw new KeyNotFoundException($"load_state_dict: expected {name}, got {string.Join(", ", holder.Keys.Cast<object>())}");

    private static Options Copy(OrderedDictionary<string, object?> source)
    {
        var result = new Options();
        foreach (var (name, value) in source)
        {
            result.Add(name, value is IEnumerable<object?> items ? items.ToList() : value);
        }

        return result;
    }

    /// <summary>Copy a tree of dicts, lists and tensors.</summary>
    private static object? Cloned(object? value, Func<Tensor, Tensor> cast)
    {
        switch (value)
        {
            case Tensor tensor:
                return cast(tensor.detach()).clone().DetachFromDisposeScope();
            case string:
                return value;
            case IDictionary entries:
                var result = new Options();
                foreach (DictionaryEntry entry in entries)
                {
                    result[(string)entry.Key] = Cloned(entry.Value, cast);
                }

                return result;
            case IEnumerable items:
                return items.Cast<object?>().Select(item => Cloned(item, cast)).ToList();
            default:
                return value;
        }
    }

    private void Replace(List<(Parameter Parameter, ParameterState State)> taken, List<Options> values)
    {
        foreach (var state in states.Values)
        {
            state.Dispose();
        }

        states.Clear();
        foreach (var (parameter, state) in taken)
        {
            states[parameter] = state;
        }

        foreach (var (group, own) in groups.Zip(values))
        {
            group.Take(own);
        }
    }

    /// <summary>Number the parameters.</summary>
    private Dictionary<Parameter, long> Indices()
    {
        var result = new Dictionary<Parameter, long>(ReferenceEqualityComparer.Instance);
        foreach (var (index, parameter) in parameters().Index())
        {
            result[parameter] = index;
        }

        return result;
    }
}
