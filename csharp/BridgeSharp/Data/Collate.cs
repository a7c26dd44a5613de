using System.Collections;
using System.Runtime.CompilerServices;
using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Data;

/// <summary>Samples, stacked into a batch.</summary>
internal static class Collate
{
    /// <summary>Stack what samples have at one place; each comes with its path.</summary>
    /// <remarks>Spec: R17.4, R17.5. Source: torch/utils/data/_utils/collate.py</remarks>
    /// <exception cref="ArgumentException">Samples that are not alike, or that cannot be stacked.</exception>
    public static object Stack(IReadOnlyList<(string Path, object? Value)> samples)
    {
        var (firstPath, first) = samples[0];
        foreach (var (path, value) in samples)
        {
            if (Tree.Describe(value) != Tree.Describe(first))
            {
                throw new ArgumentException(
                    $"Loader: expected {path} to be like {firstPath}, {Tree.Describe(first)}, got {Tree.Describe(value)}; " +
                    "collate list keeps samples as they are");
            }
        }

        if (Leaves([.. samples.Select(sample => sample.Value)]) is { } leaves)
        {
            return leaves;
        }

        var rows = samples.Select(sample => Tree.Children(sample.Value, sample.Path)).ToList();
        if (rows[0] is not { } parts || Tree.IsList(first))
        {
            throw new ArgumentException(
                $"Loader: expected tensors, numbers, strings, tuples or dicts at {firstPath}, got {Tree.Describe(first)}");
        }

        return Rebuild(first!, parts, [.. parts.Select((_, i) => Stack([.. rows.Select(row => (row![i].Path, row[i].Value))]))]);
    }

    /// <summary>Stack tensors and numbers and list strings, or return null where the values are something else.</summary>
    private static object? Leaves(IReadOnlyList<object?> values) => values[0] switch
    {
        Tensor => stack(values.Cast<Tensor>()),
        bool => tensor([.. values.Cast<bool>()]),
        int or long => tensor([.. values.Select(value => Convert.ToInt64(value, null))]),
        float or double => tensor([.. values.Select(value => Convert.ToDouble(value, null))]),
        string => values.Cast<string>().ToList(),
        _ => null,
    };

    /// <summary>Make a container as that of a sample; where that has numbers, of the types that they have as a batch.</summary>
    private static object Rebuild(object sample, IReadOnlyList<Part> parts, IReadOnlyList<object> stacked)
    {
        var type = sample.GetType();
        if (parts.Zip(stacked).All(pair => pair.First.Place.IsInstanceOfType(pair.Second)))
        {
            return Tree.Rebuild(sample, stacked);
        }

        if (sample is ITuple && stacked.Count < 8)
        {
            var types = stacked.Select(part => part.GetType()).ToArray();
            return Activator.CreateInstance(type.GetGenericTypeDefinition().MakeGenericType(types), [.. stacked])!;
        }

        if (!Tree.IsDictionary(sample))
        {
            throw new ArgumentException($"Loader: expected samples that can hold tensors, got {Tree.Name(type)}");
        }

        var twin = (IDictionary)Activator.CreateInstance(typeof(Dictionary<,>).MakeGenericType(parts[0].Key.GetType(), typeof(object)))!;
        foreach (var (part, value) in parts.Zip(stacked))
        {
            twin.Add(part.Key, value);
        }

        return twin;
    }
}
