using System.Collections;
using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp;

public static partial class bridge
{
    /// <summary>Join the outputs of the replicas, in their order, on one device.</summary>
    /// <remarks>
    /// Tensors are concatenated along <paramref name="dim"/>; scalar tensors and numbers become one tensor
    /// <c>(k,)</c>; tuples, lists, arrays and dictionaries are joined part by part; null stays null.
    /// Gradients flow back to every replica. Spec: R2.1, R2.2, R2.3.
    /// Source: torch/nn/parallel/scatter_gather.py
    /// </remarks>
    /// <param name="outputs">One tree per replica, all of one structure.</param>
    /// <param name="device">Where the result lives; the CPU by default.</param>
    /// <param name="dim">The dimension that counts samples.</param>
    /// <returns>One fresh tree.</returns>
    /// <exception cref="ArgumentException">No outputs, outputs of different structures, or a leaf that cannot be joined.</exception>
    public static T gather<T>(IReadOnlyList<T> outputs, Device? device = null, int dim = 0)
    {
        if (outputs.Count == 0)
        {
            throw new ArgumentException("gather: expected at least 1 output, got 0");
        }

        using var scope = NewDisposeScope();
        return (T)Tree.MoveToOuterScope(Join([.. outputs], "outputs", device ?? CPU, dim))!;
    }

    /// <summary>Join the values that the replicas have at one place.</summary>
    private static object? Join(object?[] values, string path, Device device, int dim)
    {
        var first = values[0];
        var labels = Labels(first, path);
        for (var index = 0; index < values.Length; index++)
        {
            if (Kind(values[index]) != Kind(first) || !SameLabels(Labels(values[index], path), labels))
            {
                throw new ArgumentException(
                    $"gather: expected {path} of replica {index} to be like replica 0's, " +
                    $"{Tree.Describe(first)}, got {Tree.Describe(values[index])}");
            }
        }

        switch (first)
        {
            case null:
                return null;
            case Tensor scalar:
                var moved = values.Select(value => ((Tensor)value!).to(device)).ToList();
                return scalar.dim() == 0 ? stack(moved) : Concatenate(moved, dim);
            case bool:
                return tensor(values.Cast<bool>().ToArray(), device: device);
            case int or long:
                return tensor(values.Select(value => Convert.ToInt64(value, null)).ToArray(), device: device);
            case float or double:
                return tensor(values.Select(value => Convert.ToDouble(value, null)).ToArray(), device: device);
        }

        if (labels is null)
        {
            throw new ArgumentException($"gather: expected tensors, numbers or None at {path}, got {Tree.Describe(first)}");
        }

        var rows = values.Select(value => Tree.Children(value, path)!).ToList();
        var parts = labels.Select((label, i) => Join([.. rows.Select(row => row[i].Value)], label, device, dim));
        return Tree.Rebuild(first, [.. parts]);
    }

    /// <summary>Concatenate tensors; TorchSharp's <c>cat</c> of one tensor is no copy.</summary>
    private static Tensor Concatenate(List<Tensor> tensors, int dim) => tensors is [var one] ? one.clone() : cat(tensors, dim);

    /// <summary>List the paths of the parts of a container, or null for a leaf.</summary>
    private static List<string>? Labels(object? value, string path)
        => Tree.Children(value, path)?.Select(part => part.Path).ToList();

    private static bool SameLabels(List<string>? a, List<string>? b)
        => a is null || b is null ? a == b : a.SequenceEqual(b);

    /// <summary>Name what must agree between replicas: the type, and whether a tensor is a scalar.</summary>
    private static (Type Type, bool Scalar) Kind(object? value)
        => value is Tensor tensor ? (typeof(Tensor), tensor.dim() == 0) : (value?.GetType() ?? typeof(void), false);
}
