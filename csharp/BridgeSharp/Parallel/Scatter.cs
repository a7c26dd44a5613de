using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp;

public static partial class bridge
{
    /// <summary>Split nested arguments into one shard per device, in the sizes of <c>torch.chunk</c>.</summary>
    /// <remarks>
    /// Tensors are split along <paramref name="dim"/>; a list or array is a list of samples and is split by
    /// sample; tuples, dictionaries, records and types with init properties are split part by part; numbers, strings
    /// and null go to every shard. Fewer samples than devices give fewer shards.
    /// Spec: R1.1, R1.2, R1.3, R1.4, R1.5, R1.6. Source: torch/nn/parallel/scatter_gather.py
    /// </remarks>
    /// <param name="inputs">A tensor <c>(N, *)</c>, a list of N samples, or a tree of them.</param>
    /// <param name="devices">Where the shards go, in order.</param>
    /// <param name="dim">The dimension that counts samples.</param>
    /// <returns>One tree per shard; its tensors are views of <paramref name="inputs"/> where the device is the same.</returns>
    /// <exception cref="ArgumentException">
    /// No device, nothing to split, an empty batch, batches of different sizes, or something that holds samples, but
    /// cannot be split.
    /// </exception>
    public static IReadOnlyList<T> scatter<T>(T inputs, IReadOnlyList<Device> devices, int dim = 0)
    {
        Devices.Check("scatter", devices);
        return Shards(inputs, batch_size(inputs, dim, "scatter"), devices, dim);
    }

    /// <summary>Split positional and keyword arguments together, into as many shards of both.</summary>
    /// <remarks>
    /// They are one batch: what is split in either has the same number of samples, and what has none goes to every
    /// shard. So no replica is called with some of its arguments missing. Spec: R1.7.
    /// Source: torch/nn/parallel/scatter_gather.py
    /// </remarks>
    /// <param name="inputs">A tuple of positional arguments, which may be empty; or the one argument.</param>
    /// <param name="kwargs">The keyword arguments by their names.</param>
    /// <param name="devices">Where the shards go, in order.</param>
    /// <param name="dim">The dimension that counts samples.</param>
    /// <returns>The shards of <paramref name="inputs"/> and those of <paramref name="kwargs"/>.</returns>
    /// <exception cref="ArgumentException">
    /// No device, nothing to split, an empty batch, batches of different sizes, or something that holds samples, but
    /// cannot be split.
    /// </exception>
    public static (IReadOnlyList<object> Shards, IReadOnlyList<IReadOnlyDictionary<string, object?>> Kwargs) scatter_kwargs(
        object inputs, IReadOnlyDictionary<string, object?> kwargs, IReadOnlyList<Device> devices, int dim = 0)
    {
        const string Verb = "scatter_kwargs";
        Devices.Check(Verb, devices);
        var count = Agreed([.. Sizes(inputs, "inputs", dim, Verb), .. Sizes(kwargs, "kwargs", dim, Verb)], Verb);
        return (Shards(inputs, count, devices, dim), Shards(kwargs, count, devices, dim));
    }

    /// <summary>Count the samples of nested arguments; every tensor and list must agree.</summary>
    /// <remarks>Spec: R1.4, R1.5, R1.6.</remarks>
    /// <param name="inputs">A tree of tensors and lists of samples.</param>
    /// <param name="dim">The dimension that counts samples.</param>
    /// <param name="verb">The caller, named in the error.</param>
    /// <param name="name">What the tree is called there.</param>
    /// <returns>The number of samples.</returns>
    /// <exception cref="ArgumentException">
    /// Nothing to count, an empty batch, batches of different sizes, or something that holds samples, but cannot be
    /// split.
    /// </exception>
    internal static long batch_size(object? inputs, int dim = 0, string verb = "batch_size", string name = "inputs")
        => Agreed([.. Sizes(inputs, name, dim, verb)], verb);

    /// <summary>Take the one size that all agree on.</summary>
    private static long Agreed(IReadOnlyList<(string Path, long Size)> sizes, string verb)
    {
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
        var parts = Tree.Children(value, path);
        switch (value)
        {
            case Tensor tensor when dim < -tensor.dim() || dim >= tensor.dim():
                throw new ArgumentException(
                    $"{verb}: expected {path} to have a dimension {dim}, got shape {Text.Shape(tensor.shape)}");
            case Tensor tensor:
                return [(path, tensor.size(dim))];
            case not null when Tree.IsList(value):
                return [(path, parts!.Count)];
            case not null when parts is null && Tree.HoldsSamples(value):
                var expected = $"{path} to be a tensor, a list, a tuple, a dict or a plain value";
                throw new ArgumentException($"{verb}: expected {expected}, got {Tree.Name(value.GetType())}");
            default:
                return (parts ?? []).SelectMany(part => Sizes(part.Value, part.Path, dim, verb));
        }
    }

    /// <summary>Cut a tree of <paramref name="count"/> samples into its shards, each on its device.</summary>
    private static List<T> Shards<T>(T tree, long count, IReadOnlyList<Device> devices, int dim)
    {
        using var scope = NewDisposeScope();
        var size = (count + devices.Count - 1) / devices.Count;
        var shards = new List<T>();
        for (long start = 0; start < count; start += size)
        {
            var part = Part(tree, start, Math.Min(size, count - start), dim);
            shards.Add((T)Tree.MoveToOuterScope(Tree.Move(part, devices[shards.Count]))!);
        }

        return shards;
    }

    /// <summary>Cut the samples <paramref name="start"/> to <c>start + length</c> out of a tree.</summary>
    private static object? Part(object? value, long start, long length, int dim)
    {
        if (value is Tensor tensor)
        {
            return tensor.narrow(dim, start, length);
        }

        var parts = Tree.Children(value, "")?.Select(part => part.Value);
        if (parts is null)
        {
            return value;
        }

        return Tree.Rebuild(value!, Tree.IsList(value)
            ? [.. parts.Skip((int)start).Take((int)length)]
            : [.. parts.Select(part => Part(part, start, length, dim))]);
    }
}
