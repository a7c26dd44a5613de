using System.Collections;
using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp;

public static partial class bridge
{
    /// <summary>Split nested arguments into one shard per device, in the sizes of <c>torch.chunk</c>.</summary>
    /// <remarks>
    /// Tensors are split along <paramref name="dim"/>; a list or array is a list of samples and is split by
    /// sample; tuples and dictionaries are split part by part; numbers, strings and null go to every shard.
    /// Fewer samples than devices give fewer shards. Spec: R1.1, R1.2, R1.3, R1.4, R1.5.
    /// Source: torch/nn/parallel/scatter_gather.py
    /// </remarks>
    /// <param name="inputs">A tensor <c>(N, *)</c>, a list of N samples, or a tree of them.</param>
    /// <param name="devices">Where the shards go, in order.</param>
    /// <param name="dim">The dimension that counts samples.</param>
    /// <returns>One tree per shard; its tensors are views of <paramref name="inputs"/> where the device is the same.</returns>
    /// <exception cref="ArgumentException">No device, nothing to split, an empty batch, or batches of different sizes.</exception>
    public static IReadOnlyList<T> scatter<T>(T inputs, IReadOnlyList<Device> devices, int dim = 0)
    {
        Devices.Check("scatter", devices);
        using var scope = NewDisposeScope();
        var count = batch_size(inputs, dim, "scatter");
        var size = (count + devices.Count - 1) / devices.Count;
        var shards = new List<T>();
        for (long start = 0; start < count; start += size)
        {
            var part = Part(inputs, start, Math.Min(size, count - start), dim);
            shards.Add((T)Tree.MoveToOuterScope(Tree.Move(part, devices[shards.Count]))!);
        }

        return shards;
    }

    /// <summary>Count the samples of nested arguments; every tensor and list must agree.</summary>
    /// <remarks>Spec: R1.4, R1.5.</remarks>
    /// <param name="inputs">A tree of tensors and lists of samples.</param>
    /// <param name="dim">The dimension that counts samples.</param>
    /// <param name="verb">The caller, named in the error.</param>
    /// <returns>The number of samples.</returns>
    /// <exception cref="ArgumentException">Nothing to count, an empty batch, or batches of different sizes.</exception>
    internal static long batch_size(object? inputs, int dim = 0, string verb = "batch_size")
    {
        var sizes = Sizes(inputs, "inputs", dim, verb).ToList();
        if (sizes.Count == 0)
        {
            throw new ArgumentException($"{verb}: expected at least 1 tensor or list of samples, got none");
        }

        var (firstPath, first) = sizes[0];
        foreach (var (path, size) in sizes)
        {
            if (size != first)
            {
                var expected = $"{path} to have the batch size of {firstPath}, {first}";
                throw new ArgumentException($"{verb}: expected {expected}, got {size}");
            }
        }

        return first > 0
            ? first
            : throw new ArgumentException($"{verb}: expected at least 1 sample, got 0 in {firstPath}");
    }

    /// <summary>List the batch size of every tensor and list of samples with its path.</summary>
    private static IEnumerable<(string Path, long Size)> Sizes(object? value, string path, int dim, string verb)
    {
        switch (value)
        {
            case Tensor tensor when dim < -tensor.dim() || dim >= tensor.dim():
                throw new ArgumentException(
                    $"{verb}: expected {path} to have a dimension {dim}, got shape {Text.Shape(tensor.shape)}");
            case Tensor tensor:
                return [(path, tensor.size(dim))];
            case IList list and not System.Runtime.CompilerServices.ITuple:
                return [(path, list.Count)];
            default:
                return (Tree.Children(value, path) ?? []).SelectMany(part => Sizes(part.Value, part.Path, dim, verb));
        }
    }

    /// <summary>Cut the samples <paramref name="start"/> to <c>start + length</c> out of a tree.</summary>
    private static object? Part(object? value, long start, long length, int dim)
    {
        switch (value)
        {
            case Tensor tensor:
                return tensor.narrow(dim, start, length);
            case IList list:
                return Tree.RebuildList(list, [.. list.Cast<object?>().Skip((int)start).Take((int)length)]);
            default:
                var parts = Tree.Children(value, "");
                return parts is null ? value : Tree.Rebuild(value!, [.. parts.Select(part => Part(part.Value, start, length, dim))]);
        }
    }
}
