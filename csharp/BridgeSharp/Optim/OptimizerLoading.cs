using System.Collections;
using BridgeSharp.Parallel;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <content>Options and states that were saved.</content>
public abstract partial class Optimizer
{
    /// <summary>Complete the options of a group that was saved.</summary>
    private Options Loaded(IDictionary saved, ParamGroup group, int index)
    {
        var result = new Options();
        foreach (DictionaryEntry entry in saved)
        {
            if ((string)entry.Key != "params")
            {
                result[(string)entry.Key] = schema.Read((string)entry.Key, Cloned(entry.Value, tensor => tensor));
            }
        }

        if (group.Values.TryGetValue("param_names", out var names))
        {
            result.TryAdd("param_names", names);
        }

        foreach (var key in schema.Keys(reference).Where(key => !result.ContainsKey(key)))
        {
            result[key] = schema.IsOptional(key)
                ? schema.Default(key, reference)
                : throw new KeyNotFoundException($"load_state_dict: expected {key} in group {index}, got {string.Join(", ", result.Keys)}");
        }

        foreach (var (key, value) in schema.Fixed.Where(pair => result.ContainsKey(pair.Key)))
        {
            result[key] = value;
        }

        return result;
    }

    private List<(Parameter, ParameterState)> Loaded(IDictionary saved, List<List<long>> ids, List<Options> values, bool exact)
    {
        using var untracked = no_grad();
        using var scope = NewDisposeScope();
        var places = ids.SelectMany((group, index) => group.Select((id, place) => (id, groups[index].Parameters[place], values[index])))
            .DistinctBy(place => place.id).ToDictionary(place => place.id, place => (Parameter: place.Item2, Group: place.Item3));
        List<(Parameter, ParameterState)> result = [];
        foreach (DictionaryEntry entry in saved)
        {
            if (!places.TryGetValue(Convert.ToInt64(entry.Key, null), out var place))
            {
                throw new ArgumentException($"load_state_dict: expected states of the parameters of the groups, got one of {entry.Key}");
            }

            var state = new ParameterState();
            foreach (DictionaryEntry part in (IDictionary)entry.Value!)
            {
                state[(string)part.Key] = Loaded((string)part.Key, part.Value, place.Parameter, place.Group, entry.Key, exact);
            }

            result.Add((place.Parameter, state));
        }

        return result;
    }

    /// <summary>Copy an entry; PyTorch's policy says in which dtype, unless it stays as it is.</summary>
    private object? Loaded(string name, object? value, Parameter parameter, Options group, object id, bool exact)
    {
        if (!PlainStep && Numbers.Contains(name) && value is not (Tensor or null))
        {
            return Formulas.Number(Convert.ToDouble(value, null), Old);
        }

        if (StatesAreShaped && !Numbers.Contains(name) && (value is not (Tensor or null) || (value is Tensor given && !given.shape.SequenceEqual(parameter.shape))))
        {
            var got = value is Tensor other ? Text.Shape(other.shape) : value!.ToString();
            throw new ArgumentException($"load_state_dict: expected {name} of shape {Text.Shape(parameter.shape)} for parameter {id}, got {got}");
        }

        var fused = group.GetValueOrDefault("fused") is true || group.GetValueOrDefault("capturable") is true;
        return Cloned(value, tensor => (name == "step", fused) switch
        {
            (true, false) => tensor,
            (true, true) => tensor.to(float32, parameter.device),
            _ when parameter.is_floating_point() && !exact => tensor.to(parameter.dtype, parameter.device),
            _ => tensor.to(parameter.device),
        });
    }
}
