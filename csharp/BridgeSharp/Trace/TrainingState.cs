using System.Reflection;
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

    /// <summary>List the layers of a model by name, itself first.</summary>
    public static IEnumerable<(string Name, nn.Module Layer)> Layers(nn.Module model)
        => model.named_modules().Select(named => (named.name, named.module)).Prepend(("", model));

    /// <summary>List the parameters of a model, a tied one once.</summary>
    public static IEnumerable<(string Name, Parameter Parameter)> Parameters(nn.Module model)
        => model.named_parameters().DistinctBy(named => named.parameter.Handle).Select(named => (named.name, named.parameter));

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
        => Parameters(model).Select(named => ("parameter", named.Name, (Tensor)named.Parameter))
            .Concat(Registered.Buffers(model).Select(named => ("buffer", named.Name, named.Tensor)));

    /// <summary>List the learning rates of all groups of all optimizers.</summary>
    public static IEnumerable<(string Name, string Part, object? Value)> LearningRates(IReadOnlyList<optim.Optimizer> optimizers)
        => optimizers.Index().SelectMany(own => own.Item.ParamGroups.Index().Select(group => (
            FormattableString.Invariant($"optimizer{own.Index}"), FormattableString.Invariant($"group{group.Index}"), (object?)group.Item.LearningRate)));

    /// <summary>List the state of an optimizer under the names of the model's parameters.</summary>
    /// <remarks>TorchSharp makes the state with the optimizer, PyTorch with the first step: it is listed from there on.</remarks>
    public static IEnumerable<(string Name, string Part, object Value)> OptimizerState(optim.Optimizer optimizer, nn.Module model)
    {
        if (optimizer is Optim.Optimizer own)
        {
            foreach (var entry in OwnState.Of(own, Parameters(model)))
            {
                yield return entry;
            }

            yield break;
        }

        if (optimizer is not OptimizerHelper helper)
        {
            yield break;
        }

        var states = helper.parameters().Zip(helper.state_dict().State).ToDictionary(pair => pair.First.Handle, pair => pair.Second);
        foreach (var (name, parameter) in Parameters(model))
        {
            var fields = states.TryGetValue(parameter.Handle, out var state) ? Fields(state) : [];
            if (fields.Any(field => field.Value is 0L))
            {
                continue;
            }

            foreach (var (part, value) in fields.Where(field => field.Value is long or Tensor).OrderBy(field => field.Name, StringComparer.Ordinal))
            {
                yield return (name, part, value!);
            }
        }
    }

    private static IEnumerable<(string Option, object? Value)> OptionsOf(optim.ILearningRateController group)
    {
        if (group is Optim.ParamGroup own)
        {
            return Options.Where(own.has).Select(option => (option, Plain(own[option])));
        }

        var known = group is ParamGroup { Options: { } options } ? Fields(options).ToDictionary(field => field.Name, field => field.Value) : [];
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
        System.Runtime.CompilerServices.ITuple pair => Enumerable.Range(0, pair.Length).Select(index => Plain(pair[index])).ToArray(),
        _ => value,
    };

    private static IReadOnlyList<(string Name, object? Value)> Fields(object holder)
        => [.. holder.GetType().GetFields(BindingFlags.Instance | BindingFlags.Public).Select(field => (field.Name, field.GetValue(holder)))];
}
