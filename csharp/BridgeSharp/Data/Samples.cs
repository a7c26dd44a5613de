using System.Runtime.CompilerServices;
using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Data;

/// <summary>What a loader reads from.</summary>
internal static class Samples
{
    /// <summary>Count the samples of a data set, and make the function that reads a batch of them.</summary>
    /// <remarks>Spec: R17.4, R17.5.</remarks>
    /// <exception cref="ArgumentException">Not a data set, no samples, tensors and lists of different lengths, or nothing to collate.</exception>
    public static (long Count, Func<Tensor, object> Read) Source(object dataset, string collate)
    {
        if (collate is not ("stack" or "list"))
        {
            throw new ArgumentException($"Loader: expected collate stack or list, got {collate}");
        }

        var (count, read, kind) = dataset switch
        {
            IDataset batches => (batches.Count, batches.batch, "batches"),
            Tensor or ITuple => Tensors(dataset),
            _ when Tree.IsDictionary(dataset) => Tensors(dataset),
            _ => Sequence(dataset, collate),
        };
        if (collate == "list" && kind != "samples")
        {
            throw new ArgumentException($"Loader: expected a sequence of samples to collate as a list, got {kind}");
        }

        return count > 0 ? (count, read) : throw new ArgumentException("Loader: expected at least 1 sample, got 0 in dataset");
    }

    /// <summary>Read from a tree of tensors and lists.</summary>
    private static (long Count, Func<Tensor, object> Read, string Kind) Tensors(object dataset)
        => (bridge.batch_size(dataset, verb: "Loader", name: "dataset"), indices => Select(dataset, indices)!, "tensors");

    /// <summary>Take samples out of a tree of tensors and lists; what is neither goes to every batch.</summary>
    private static object? Select(object? value, Tensor indices)
    {
        if (value is Tensor tensor)
        {
            return tensor[indices];
        }

        var parts = Tree.Children(value, "");
        if (parts is null)
        {
            return value;
        }

        return Tree.Rebuild(value!, Tree.IsList(value)
            ? [.. Numbers(indices).Select(index => parts[(int)index].Value)]
            : [.. parts.Select(part => Select(part.Value, indices))]);
    }

    /// <summary>Find out how samples are read one by one: from a list, an array, or a data set of TorchSharp.</summary>
    private static (long Count, Func<Tensor, object> Read, string Kind) Sequence(object dataset, string collate)
    {
        var types = Types(dataset.GetType()).ToLookup(type => type.GetGenericTypeDefinition());
        var type = types[typeof(IReadOnlyList<>)].Concat(types[typeof(utils.data.Dataset<>)]).FirstOrDefault()
            ?? throw new ArgumentException($"Loader: expected a data set with a length, got {Tree.Describe(dataset)}");
        var samples = (IOneByOne)Activator.CreateInstance(typeof(OneByOne<>).MakeGenericType(type.GetGenericArguments()), dataset)!;
        return (samples.Count, collate == "stack" ? samples.Stacked : samples.Listed, "samples");
    }

    /// <summary>List the generic interfaces and classes that a type is.</summary>
    private static List<Type> Types(Type type)
    {
        var types = type.GetInterfaces().ToList();
        for (var own = type; own is not null; own = own.BaseType)
        {
            types.Add(own);
        }

        return types.FindAll(one => one.IsGenericType);
    }

    /// <summary>List the numbers of a tensor.</summary>
    private static long[] Numbers(Tensor indices) => indices.data<long>().ToArray();

    private interface IOneByOne
    {
        long Count { get; }

        object Listed(Tensor indices);

        object Stacked(Tensor indices);
    }

    private sealed class OneByOne<T>(long count, Func<long, T> sample) : IOneByOne
    {
        public OneByOne(IReadOnlyList<T> samples)
            : this(samples.Count, index => samples[(int)index])
        {
        }

        public OneByOne(utils.data.Dataset<T> samples)
            : this(samples.Count, samples.GetTensor)
        {
        }

        public long Count => count;

        /// <summary>Read samples one by one, and keep them as they are.</summary>
        public object Listed(Tensor indices) => Numbers(indices).Select(sample).ToList();

        /// <summary>Read samples one by one, and stack them.</summary>
        public object Stacked(Tensor indices)
        {
            using var scope = NewDisposeScope();
            var samples = Numbers(indices).Select(index => ($"dataset[{index}]", (object?)sample(index)));
            return Tree.MoveToOuterScope(Collate.Stack([.. samples]))!;
        }
    }
}
