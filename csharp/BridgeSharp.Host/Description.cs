using System.Text.Json.Nodes;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Host;

/// <summary>What a trainer starts from, beside what its trace says.</summary>
internal static class Description
{
    private const int Draws = 4;

    /// <summary>Say which parameters are one, which schedulers there are, how libtorch runs, and what it draws first.</summary>
    /// <remarks>It leaves the generator at the seed.</remarks>
    public static object Of(Trainer trainer, JsonObject arguments)
    {
        var seed = (long)arguments["seed"]!;
        random.manual_seed(seed);
        using var drawn = rand(Draws, dtype: float64);
        random.manual_seed(seed);
        return new
        {
            tied = Tied(trainer.model),
            schedulers = trainer.schedulers.Select(scheduler => scheduler.GetType().Name),
            threads = get_num_threads(),
            draws = drawn.data<double>().ToArray(),
        };
    }

    /// <summary>List the names that stand for one parameter.</summary>
    private static IEnumerable<IEnumerable<string>> Tied(nn.Module model)
        => model.named_modules().Select(named => (Prefix: named.name + ".", Module: named.module)).Prepend((Prefix: "", Module: model))
            .SelectMany(layer => layer.Module.named_parameters(recurse: false).Select(own => (Name: layer.Prefix + own.name, own.parameter.Handle)))
            .GroupBy(own => own.Handle, own => own.Name)
            .Where(names => names.Distinct().Skip(1).Any())
            .Select(names => names.Distinct().Order(StringComparer.Ordinal));
}
