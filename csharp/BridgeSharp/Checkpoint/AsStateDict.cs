using System.Collections;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Checkpoint;

/// <summary>Trees that were read, as state dicts.</summary>
public static class AsStateDict
{
    /// <summary>Take a part of what was read as names and tensors, for <c>load_state_dict</c>.</summary>
    /// <remarks>Spec: R26.12.</remarks>
    /// <param name="value">A dictionary of names and tensors.</param>
    /// <returns>Names and tensors (aliases), in their order.</returns>
    /// <exception cref="ArgumentException">Something else; the name is given.</exception>
    public static OrderedDictionary<string, Tensor> as_state_dict(object? value)
    {
        if (value is not IDictionary dictionary)
        {
            throw new ArgumentException($"as_state_dict: expected names and tensors, got {Kind(value)}");
        }

        var state = new OrderedDictionary<string, Tensor>();
        foreach (DictionaryEntry entry in dictionary)
        {
            state[entry.Key as string ?? ""] = entry is { Key: string, Value: Tensor tensor }
                ? tensor
                : throw new ArgumentException($"as_state_dict: expected a name and a tensor, got {entry.Key}: {Kind(entry.Value)}");
        }

        return state;
    }

    /// <summary>Name a type as Python does.</summary>
    private static string Kind(object? value) => value switch
    {
        null => "NoneType",
        Tensor => "tensor",
        string => "str",
        bool => "bool",
        int or long => "int",
        float or double => "float",
        IDictionary => "dict",
        Array => "tuple",
        IList => "list",
        _ => Parallel.Tree.Name(value.GetType()),
    };
}
