using System.Collections;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>Nested arguments: tuples, lists, arrays, dictionaries and records of tensors.</summary>
internal static class Tree
{
    /// <summary>List the parts of a container with their paths, or null where the value is a leaf.</summary>
    public static IReadOnlyList<Part>? Children(object? value, string path)
        => Container.Of(value) is { } container ? [.. container.Parts(value!, path)] : null;

    /// <summary>Make a container of the same type as <paramref name="value"/> with other parts.</summary>
    public static object Rebuild(object value, IReadOnlyList<object?> parts) => Container.Of(value)!.Rebuild(value, parts);

    /// <summary>Bring every tensor of a tree to a device; other leaves stay as they are.</summary>
    public static object? Move(object? value, Device device)
    {
        if (value is Tensor tensor)
        {
            return tensor.to(device);
        }

        var parts = Children(value, "");
        return parts is null ? value : Rebuild(value!, [.. parts.Select(part => Move(part.Value, device))]);
    }

    /// <summary>List every tensor of a tree, in order.</summary>
    public static IEnumerable<Tensor> Tensors(object? value)
        => value is Tensor tensor
            ? [tensor]
            : (Children(value, "") ?? []).SelectMany(part => Tensors(part.Value));

    /// <summary>Hand every tensor of a tree from the innermost dispose scope to the one around it.</summary>
    /// <returns>The tree.</returns>
    public static object? MoveToOuterScope(object? value)
    {
        foreach (var tensor in Tensors(value))
        {
            tensor.MoveToOuterDisposeScope();
        }

        return value;
    }

    /// <summary>Tell whether a value is a list of samples.</summary>
    public static bool IsList(object? value) => Container.Of(value)?.IsList == true;

    /// <summary>Tell whether a value is a dictionary.</summary>
    public static bool IsDictionary(object? value) => Container.Of(value)?.IsDictionary == true;

    /// <summary>Tell whether a leaf would take the whole batch to every shard: a set, a sequence, an object with tensors.</summary>
    public static bool HoldsSamples(object? leaf)
        => leaf is not (null or IConvertible or nn.Module or Size)
            && (leaf is IEnumerable || Container.Fields(leaf.GetType()).Any(field => Tensors(field.GetValue(leaf)).Any()));

    /// <summary>Say what a value is, for an error.</summary>
    public static string Describe(object? value) => value switch
    {
        null => "None",
        Tensor tensor => $"a tensor of shape {Text.Shape(tensor.shape)}",
        string => "str",
        bool => "bool",
        int or long => "int",
        float or double => "float",
        _ => Describe(value, Container.Of(value)),
    };

    /// <summary>Write a key as Python does.</summary>
    public static string Quoted(object key) => key switch
    {
        string => $"'{key}'",
        double number => Text.Number(number),
        _ => $"{key}",
    };

    /// <summary>Name a type, without the number of its parameters.</summary>
    public static string Name(Type type) => type.Name.Split('`')[0];

    private static string Describe(object value, Container? container)
    {
        var parts = container?.Parts(value, "").ToList() ?? [];
        return container switch
        {
            null or RecordContainer => Name(value.GetType()),
            TupleContainer => $"tuple of {parts.Count}",
            { IsDictionary: true } => $"dict of [{string.Join(", ", parts.Select(part => Quoted(part.Key)))}]",
            _ => $"list of {parts.Count}",
        };
    }
}
