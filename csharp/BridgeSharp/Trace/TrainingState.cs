using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using BridgeSharp.Parallel;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Trace;

/// <summary>What a trace says of models and optimizers: configuration, state, learning rates.</summary>
internal static class TrainingState
{
    /// <summary>The options of optimizers that change what they compute.</summary>
    private static readonly string[] Options =
    [
        "lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize", "betas", "eps", "amsgrad", "alpha", "centered", "lr_decay", "rho",
        "initial_accumulator_value",
    ];

    /// <summary>Say what runs.</summary>
    public static OrderedDictionary<string, object?> About(IReadOnlyList<nn.Module> replicas) => new()
    {
        ["language"] = "C#",
        ["replicas"] = replicas.Count,
        ["versions"] = new { dotnet = RuntimeInformation.FrameworkDescription, torchsharp = typeof(torch).Assembly.GetName().Version!.ToString(3), libtorch = __version__ },
        ["threads"] = get_num_threads(),
    };

    /// <summary>List the layers of a model by name, itself first, one that has several names once.</summary>
    public static IEnumerable<(string Name, nn.Module Layer)> Layers(nn.Module model)
        => model.named_modules().Select(named => (named.name, named.module)).Prepend(("", model))
            .DistinctBy(named => named.Item2, ReferenceEqualityComparer.Instance).Concat(Unregistered.Layers(model));

    /// <summary>List the parameters of a model, a tied one once.</summary>
    public static IEnumerable<(string Name, Tensor Parameter)> Parameters(nn.Module model)
        => Registered.Named(model).Select(named => (named.Name, (Tensor)named.Parameter)).Concat(Unregistered.Parameters(model));

    /// <summary>List the types and modes of layers, the flags of parameters, and the options of optimizers.</summary>
    /// <remarks>Spec: R30.1.</remarks>
    public static IEnumerable<(string Name, string Part, object? Value)> Configuration(nn.Module model, IReadOnlyList<optim.Optimizer> optimizers)
    {
        foreach (var (name, layer) in Layers(model))
        {
            yield return (name, "type", Tree.Name(layer.GetType()));
            yield return (name, "training", layer.training);
        }

        foreach (var (name, parameter) in Parameters(model))
        {
            yield return (name, "requires_grad", parameter.requires_grad);
        }

        foreach (var name in Unregistered.Layers(model).Select(found => found.Name).Union(Unregistered.Parameters(model).Select(found => found.Name)))
        {
            yield return (name, "registered", Unregistered.Warning);
        }

        foreach (var (index, optimizer) in optimizers.Index())
        {
            var name = FormattableString.Invariant($"optimizer{index}");
            yield return (name, "type", Tree.Name(optimizer.GetType()));
            foreach (var (number, group) in optimizer.ParamGroups.Index())
            {
                foreach (var (option, value) in OptionsOf(group))
                {
                    yield return (name, FormattableString.Invariant($"group{number}.{option}"), value);
                }
            }
        }
    }

    /// <summary>List the parameters and the buffers of a model, with their kinds.</summary>
    public static IEnumerable<(string Kind, string Name, Tensor Tensor)> Tensors(nn.Module model)
        => Parameters(model).Select(named => ("parameter", named.Name, named.Parameter))
            .Concat(Registered.Buffers(model).Concat(Unregistered.Buffers(model)).Select(named => ("buffer", named.Item1, named.Item2)));

    /// <summary>List the learning rates of all groups of all optimizers.</summary>
    public static IEnumerable<(string Name, string Part, object? Value)> LearningRates(IReadOnlyList<optim.Optimizer> optimizers)
        => optimizers.Index().SelectMany(own => own.Item.ParamGroups.Index().Select(group => (
            FormattableString.Invariant($"optimizer{own.Index}"), FormattableString.Invariant($"group{group.Index}"), (object?)group.Item.LearningRate)));

    /// <summary>List the state of an optimizer under the names of the model's parameters.</summary>
    public static IEnumerable<(string Name, string Part, object Value)> OptimizerState(optim.Optimizer optimizer, nn.Module model)
    {
        var states = optimizer is Optim.Optimizer own ? Entries(own) : Entries(optimizer);
        foreach (var (name, parameter) in Parameters(model))
        {
            foreach (var (part, value) in states.GetValueOrDefault(TensorCopier.Identity(parameter), []).OrderBy(entry => entry.Part, StringComparer.Ordinal))
            {
                if (part == "step")
                {
                    yield return (name, part, value is Tensor step ? (long)step.to(float64).item<double>() : Convert.ToInt64(value, null));
                }
                else if (value is not null)
                {
                    yield return (name, part, value);
                }
            }
        }
    }

    /// <summary>List the state of each parameter.</summary>
    private static Dictionary<nint, List<(string Part, object? Value)>> Entries(Optim.Optimizer optimizer)
    {
        var state = (IDictionary<long, object?>)optimizer.state_dict()["state"]!;
        var parameters = optimizer.param_groups.SelectMany(group => group.Parameters).ToList();
        return state.ToDictionary(
            entry => TensorCopier.Identity(parameters[(int)entry.Key]),
            entry => ((IDictionary<string, object?>)entry.Value!).Select(pair => (pair.Key, pair.Value)).ToList());
    }

    /// <summary>List the state of each parameter in an optimizer of TorchSharp's.</summary>
    /// <remarks>TorchSharp makes the state with the optimizer, PyTorch with the first step: it is listed from there on.</remarks>
    private static Dictionary<nint, List<(string Part, object? Value)>> Entries(optim.Optimizer optimizer)
    {
        if (optimizer is not OptimizerHelper helper)
        {
            return [];
        }

        return helper.parameters().Zip(helper.state_dict().State)
            .Select(pair => (pair.First, Fields: Fields(pair.Second).Where(field => field.Value is long or Tensor).ToList()))
            .Where(pair => !pair.Fields.Any(field => field.Value is 0L))
            .DistinctBy(pair => TensorCopier.Identity(pair.First))
            .ToDictionary(pair => TensorCopier.Identity(pair.First), pair => pair.Fields);
    }

    private static IEnumerable<(string Option, object? Value)> OptionsOf(optim.ILearningRateController group)
    {
        if (group is Optim.ParamGroup own)
        {
            return Options.Where(own.has).Select(option => (option, Plain(own[option])));
        }

        var known = group is ParamGroup { Options: { } options } ? Fields(options).ToDictionary(field => field.Part, field => field.Value) : [];
        known["lr"] = group.LearningRate;
        if (known.TryGetValue("beta1", out var beta1) && known.TryGetValue("beta2", out var beta2))
        {
            known["betas"] = new[] { beta1, beta2 };
        }

        return Options.Where(known.ContainsKey).Select(option => (option, known[option]));
    }

    /// <summary>Write an option as JSON does: numbers as doubles, pairs as lists.</summary>
    private static object? Plain(object? value) => value switch
    {
        long number => (double)number,
        ITuple pair => Enumerable.Range(0, pair.Length).Select(index => Plain(pair[index])).ToArray(),
        _ => value,
    };

    private static List<(string Part, object? Value)> Fields(object holder)
        => [.. holder.GetType().GetFields(BindingFlags.Instance | BindingFlags.Public).Select(field => (field.Name, field.GetValue(holder)))];
}
