using System.Collections;
using System.Runtime.CompilerServices;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>Nested arguments: tuples, lists, arrays and dictionaries of tensors.</summary>
internal static class Tree
{
    /// <summary>List the parts of a container with their paths, or null where the value is a leaf.</summary>
    public static List<(string Path, object? Value)>? Children(object? value, string path) => value switch
    {
        string => null,
        IDictionary dictionary => [.. dictionary.Keys.Cast<object>().Select(key => ($"{path}[{Quoted(key)}]", dictionary[key]))],
        ITuple tuple => [.. Enumerable.Range(0, tuple.Length).Select(i => ($"{path}[{i}]", tuple[i]))],
        IList list => [.. Enumerable.Range(0, list.Count).Select(i => ($"{path}[{i}]", list[i]))],
        _ => null,
    };

    /// <summary>Make a container of the same type as <paramref name="value"/> with other parts.</summary>
    public static object Rebuild(object value, IReadOnlyList<object?> parts)
    {
        switch (value)
        {
            case IDictionary dictionary:
                var copy = (IDictionary)Activator.CreateInstance(value.GetType())!;
                foreach (var (key, part) in dictionary.Keys.Cast<object>().Zip(parts))
                {
                    copy.Add(key, part);
                }

                return copy;
            case ITuple:
                return RebuildTuple(value.GetType(), parts);
            default:
                return RebuildList((IList)value, parts);
        }
    }

    /// <summary>Make a list or array of the same type as <paramref name="list"/> with other items.</summary>
    public static IList RebuildList(IList list, IReadOnlyList<object?> parts)
    {
        if (list is Array array)
        {
            var items = Array.CreateInstance(array.GetType().GetElementType()!, parts.Count);
            for (var i = 0; i < parts.Count; i++)
            {
                items.SetValue(parts[i], i);
            }

            return items;
        }

        var result = (IList)Activator.CreateInstance(list.GetType())!;
        foreach (var part in parts)
        {
            result.Add(part);
        }

        return result;
    }

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

    /// <summary>Say what a value is, for an error.</summary>
    public static string Describe(object? value) => value switch
    {
        null => "None",
        Tensor tensor => $"a tensor of shape {Text.Shape(tensor.shape)}",
        string => "str",
        bool => "bool",
        int or long => "int",
        float or double => "float",
        IDictionary dictionary => $"dict of [{string.Join(", ", dictionary.Keys.Cast<object>().Select(Quoted))}]",
        ITuple tuple => $"tuple of {tuple.Length}",
        IList list => $"list of {list.Count}",
        _ => value.GetType().Name,
    };

    private static string Quoted(object key) => key is string ? $"'{key}'" : $"{key}";

    /// <summary>Tuples of more than seven parts nest the rest in their eighth.</summary>
    private static object RebuildTuple(Type type, IReadOnlyList<object?> parts)
    {
        var arguments = type.GetGenericArguments();
        if (arguments.Length < 8)
        {
            return Activator.CreateInstance(type, [.. parts])!;
        }

        var rest = RebuildTuple(arguments[7], [.. parts.Skip(7)]);
        return Activator.CreateInstance(type, [.. parts.Take(7), rest])!;
    }
}
