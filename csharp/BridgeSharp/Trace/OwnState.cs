using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;
using Optimizer = BridgeSharp.Optim.Optimizer;

namespace BridgeSharp.Trace;

/// <summary>What a trace says of the optimizers of BridgeSharp, which keep it under PyTorch's names.</summary>
internal static class OwnState
{
    /// <summary>List the state, under the names of the model's parameters.</summary>
    public static IEnumerable<(string Name, string Part, object Value)> Of(Optimizer optimizer, IEnumerable<(string Name, Parameter Parameter)> parameters)
    {
        var ordered = optimizer.param_groups.SelectMany(group => group.Parameters).Select(parameter => parameter.Handle).ToList();
        var state = (OrderedDictionary<long, object?>)optimizer.state_dict()["state"]!;
        foreach (var (name, parameter) in parameters)
        {
            if (!state.TryGetValue(ordered.IndexOf(parameter.Handle), out var held))
            {
                continue;
            }

            var entries = (IEnumerable<KeyValuePair<string, object?>>)held!;
            foreach (var (part, value) in entries.Where(entry => entry.Value is not null).OrderBy(entry => entry.Key, StringComparer.Ordinal))
            {
                yield return (name, part, part == "step" ? Count(value!) : value!);
            }
        }
    }

    private static long Count(object step) => step is Tensor tensor ? (long)tensor.ToDouble() : Convert.ToInt64(step, null);
}
