using BridgeSharp.Parallel;
using BridgeSharp.Parity;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp;

public static partial class bridge
{
    /// <summary>Join the outputs of the replicas, in their order, on one device.</summary>
    /// <remarks>
    /// Tensors are concatenated along <paramref name="dim"/>; scalar tensors and numbers become one tensor
    /// <c>(k,)</c>, whatever <paramref name="dim"/>; tuples, lists, arrays, dictionaries and records are joined part
    /// by part, dictionaries by their keys; null stays null. Gradients flow back to every replica.
    /// Spec: R2.1, R2.2, R2.3, R2.4. Source: torch/nn/parallel/scatter_gather.py
    /// </remarks>
    /// <param name="outputs">One tree per replica, all of one structure.</param>
    /// <param name="device">Where the result lives; the CPU by default.</param>
    /// <param name="dim">The dimension that counts samples.</param>
    /// <returns>One fresh tree.</returns>
    /// <exception cref="ArgumentException">
    /// No outputs, outputs of different structures, tensors of different dtypes, of shapes that do not fit, or without
    /// the dimension, or a leaf that cannot be joined.
    /// </exception>
    public static T gather<T>(IReadOnlyList<T> outputs, Device? device = null, int dim = 0)
    {
        if (outputs.Count == 0)
        {
            throw new ArgumentException("gather: expected at least 1 output, got 0");
        }

        var place = device ?? CPU;
        Devices.Check("gather", [place]);
        using var scope = NewDisposeScope();
        var root = new Part("outputs", null, 0, typeof(T));
        return (T)Tree.MoveToOuterScope(Join([.. outputs], root, place, dim))!;
    }

    /// <summary>Join the values that the replicas have at one place.</summary>
    private static object? Join(object?[] values, Part place, Device device, int dim)
    {
        var first = values[0];
        var rows = Array.ConvertAll(values, value => Aligned(Tree.Children(value, place.Path), Tree.Children(first, place.Path)));
        for (var index = 0; index < values.Length; index++)
        {
            if (Kind(values[index]) != Kind(first) || !Labels(rows[index]).SequenceEqual(Labels(rows[0])))
            {
                var expected = $"{place.Path} of replica {index} to be like replica 0's, {Tree.Describe(first)}";
                throw new ArgumentException($"gather: expected {expected}, got {Tree.Describe(values[index])}");
            }
        }

        switch (first)
        {
            case null:
                return null;
            case Tensor:
                return Concatenated([.. values.Cast<Tensor>()], place.Path, device, dim);
            case bool or int or long or float or double:
                return Numbers(values, place, device);
        }

        if (rows[0] is null)
        {
            throw new ArgumentException($"gather: expected tensors, numbers or None at {place.Path}, got {Tree.Describe(first)}");
        }

        var parts = rows[0]!.Select((part, i) => Join(Array.ConvertAll(rows, row => row![i].Value), part, device, dim));
        return Tree.Rebuild(first, [.. parts]);
    }

    /// <summary>Concatenate tensors, which must be of one dtype and fit; scalars are stacked.</summary>
    private static Tensor Concatenated(Tensor[] tensors, string path, Device device, int dim)
    {
        var first = tensors[0];
        if (first.dim() > 0 && (dim < -first.dim() || dim >= first.dim()))
        {
            throw new ArgumentException($"gather: expected {path} to have a dimension {dim}, got shape {Text.Shape(first.shape)}");
        }

        for (var index = 0; index < tensors.Length; index++)
        {
            var tensor = tensors[index];
            var expected = $"gather: expected {path} of replica {index} to have replica 0's";
            if (tensor.dtype != first.dtype)
            {
                throw new ArgumentException(
                    $"{expected} dtype, {Digest.dtype_name(first.dtype)}, got {Digest.dtype_name(tensor.dtype)}");
            }

            if (!Rest(tensor, dim).SequenceEqual(Rest(first, dim)))
            {
                throw new ArgumentException(
                    $"{expected} shape but along dimension {dim}, {Text.Shape(first.shape)}, got {Text.Shape(tensor.shape)}");
            }
        }

        var moved = Array.ConvertAll(tensors, tensor => tensor.to(device));
        return first.dim() == 0 ? stack(moved)
            : moved is [var one] ? one.clone() // TorchSharp's cat of one tensor is no copy.
            : cat(moved, dim);
    }

    /// <summary>List the sizes that must agree: all but the one along <paramref name="dim"/>.</summary>
    private static IEnumerable<long> Rest(Tensor tensor, int dim)
        => tensor.shape.Where((_, i) => i != (dim < 0 ? dim + tensor.dim() : dim));

    /// <summary>List the parts of a container; those of a dictionary in the order of replica 0's keys.</summary>
    private static IReadOnlyList<Part>? Aligned(IReadOnlyList<Part>? parts, IReadOnlyList<Part>? first)
    {
        if (parts is null || first is null || parts.Count != first.Count)
        {
            return parts;
        }

        var known = parts.ToDictionary(part => part.Key);
        return first.All(part => known.ContainsKey(part.Key)) ? [.. first.Select(part => known[part.Key])] : parts;
    }

    /// <summary>List the paths of the parts of a container; a leaf has none.</summary>
    private static IEnumerable<string> Labels(IReadOnlyList<Part>? parts) => (parts ?? []).Select(part => part.Path);

    /// <summary>Name what must agree between replicas: the type, and whether a tensor is a scalar.</summary>
    private static (Type Type, bool Scalar) Kind(object? value) => value switch
    {
        null => (typeof(void), false),
        Tensor tensor => (typeof(Tensor), tensor.dim() == 0),
        int => (typeof(long), false),
        float => (typeof(double), false),
        _ => (value.GetType(), false),
    };

    /// <summary>Make one tensor of numbers, of what Python's numbers hold.</summary>
    private static Tensor Numbers(object?[] values, Part place, Device device)
    {
        if (!place.Place.IsAssignableFrom(typeof(Tensor)))
        {
            throw new ArgumentException($"gather: expected {place.Path} to be of a type that can hold a tensor, got {place.Place.Name}");
        }

        return values[0] switch
        {
            bool => tensor(values.Cast<bool>().ToArray(), device: device),
            int or long => tensor(Array.ConvertAll(values, value => Convert.ToInt64(value, null)), device: device),
            _ => tensor(Array.ConvertAll(values, value => Convert.ToDouble(value, null)), device: device),
        };
    }
}
