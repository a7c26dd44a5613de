using System.Globalization;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>What a training run must agree on with the one that it goes on with.</summary>
internal static class Configuration
{
    /// <summary>Describe a trainer by texts, the same in both languages.</summary>
    public static OrderedDictionary<string, string> Of(TrainerStep training)
    {
        var options = training.Options;
        return new()
        {
            ["model"] = training.Replicas[0].GetName(),
            ["optimizer"] = Name(training.Optimizers[0]),
            ["scheduler"] = training.Schedulers is [var first, ..] ? first.GetType().Name : "None",
            ["reduction"] = options.reduction,
            ["mode"] = options.mode,
            ["buffers"] = options.buffers,
            ["accumulate"] = options.accumulate.ToString(CultureInfo.InvariantCulture),
            ["clip_norm"] = Number(options.clip_norm),
            ["clip_value"] = Number(options.clip_value),
            ["scaling"] = Scaling(options.scaling),
            ["replicas"] = training.Replicas.Count.ToString(CultureInfo.InvariantCulture),
        };
    }

    /// <summary>Say what differs from a description; the name of the model's class may.</summary>
    public static IEnumerable<string> Differences(TrainerStep training, IReadOnlyDictionary<string, object?> saved)
        => from pair in Of(training)
           let there = saved.GetValueOrDefault(pair.Key) as string
           where pair.Key != "model" && there != pair.Value
           select $"{pair.Key}: {there ?? "nothing"} in the file, {pair.Value} here";

    /// <summary>List the parameters of the optimizer by name and group, in its order.</summary>
    public static List<object?> Placed(TrainerStep training)
    {
        var names = Registered.Named(training.Replicas[0]).ToDictionary(named => TensorCopier.Identity(named.Parameter), named => named.Name);
        return [.. Groups(training.Optimizers[0]).SelectMany((group, index) => group.Select(
            parameter => $"{names.GetValueOrDefault(TensorCopier.Identity(parameter), "a stranger")} in group {index}"))];
    }

    /// <summary>Say which is the first parameter of the optimizer that has another place.</summary>
    public static IEnumerable<string> Misplaced(TrainerStep training, IReadOnlyList<object?> saved)
    {
        var own = Placed(training);
        for (var index = 0; index < Math.Max(own.Count, saved.Count); index++)
        {
            var there = saved.ElementAtOrDefault(index) as string ?? "nothing";
            var here = own.ElementAtOrDefault(index) as string ?? "nothing";
            if (there != here)
            {
                yield return $"parameter {index} of the optimizer: {there} in the file, {here} here";
                yield break;
            }
        }
    }

    /// <summary>Name the class of an optimizer, that of PyTorch where it is one of these.</summary>
    private static string Name(optim.Optimizer optimizer) => optimizer is Optim.Optimizer own ? own.Name : optimizer.GetType().Name;

    private static IEnumerable<IEnumerable<Parameter>> Groups(optim.Optimizer optimizer)
        => optimizer is Optim.Optimizer own ? own.param_groups.Select(group => group.Parameters) : [optimizer.parameters()];

    private static string Number(double? value) => value is { } number ? Text.Number(number) : "None";

    private static string Scaling(LinearScaling? scaling)
        => scaling is null ? "None" : $"factor {Text.Number(scaling.factor)}, warm_up {scaling.warm_up}";
}
