using BridgeSharp.Parallel;
using BridgeSharp.Parity;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Checkpoint;

/// <summary>What a file of <c>torch.save</c> may hold: checks a tree, each part once, wherever and however often it is in it.</summary>
/// <remarks>Spec: R26.9, R26.10.</remarks>
internal sealed class Plain
{
    private const int Levels = 100;

    /// <summary>More places than any state has; what is one object may be in many places.</summary>
    private const int Places = 10_000_000;

    private readonly HashSet<Tensor> tensors = new(ReferenceEqualityComparer.Instance);
    private readonly Dictionary<object, (long Places, int Levels)> known = new(ReferenceEqualityComparer.Instance);

    /// <summary>The tensors of what was checked, each once.</summary>
    public IEnumerable<Tensor> Tensors => tensors;

    /// <summary>Count the places and levels of a value.</summary>
    /// <exception cref="ArgumentException">
    /// No dictionary with keys of type string and int, list, tuple, array, dense tensor, dtype, number, text, boolean or
    /// null, at its place; too many levels or places. The text goes on after "expected".
    /// </exception>
    public (long Places, int Levels) Check(object? value, string path = "tree", int depth = 0)
    {
        if (value is not null && known.TryGetValue(value, out var size))
        {
            return size;
        }

        var parts = Parts(value, path);
        if (parts is null)
        {
            CheckLeaf(value, path);
            return (1, 0);
        }

        var (places, levels) = (1L, 1);
        if (depth < Levels)
        {
            foreach (var (place, part) in parts)
            {
                var inner = Check(part, place, depth + 1);
                (places, levels) = (places + inner.Places, Math.Max(levels, inner.Levels + 1));
            }
        }

        // The first bound ends what holds itself, before the second can be known.
        if (depth >= Levels || levels > Levels || places > Places)
        {
            throw new ArgumentException($"at most {Levels} levels and {Places} places, got more");
        }

        return known[value!] = (places, levels);
    }

    /// <summary>List the parts of a container, or null where the value is a leaf.</summary>
    private List<(string Path, object? Value)>? Parts(object? value, string path)
    {
        var container = Container.Of(value);
        if (container is null or RecordContainer)
        {
            return null;
        }

        var parts = container.Parts(value!, path).ToList();
        if (!container.IsDictionary)
        {
            return [.. parts.Select(part => (part.Path, part.Value))];
        }

        foreach (var part in parts)
        {
            if (part.Key is not (string or int or long or short or byte or uint))
            {
                throw new ArgumentException($"keys of type str or int at {path}, got {Tree.Describe(part.Key)}");
            }

            CheckLeaf(part.Key, path);
        }

        List<(string Path, object? Value)> listed = [.. parts.Select(part => ($"{path}[{Key(part.Key)}]", part.Value))];
        return value is OrderedDict { metadata: { } metadata } ? [.. listed, ($"{path}._metadata", metadata)] : listed;
    }

    private static string Key(object key) => key is string text ? JsonText.Quoted(text) : $"{key}";

    /// <summary>Refuse what no state has, or what the other language cannot read.</summary>
    private void CheckLeaf(object? value, string path)
    {
        switch (value)
        {
            case null or bool or float or double or sbyte or byte or short or ushort or int or uint or long:
                break;
            case string text when !JsonText.IsText(text):
                throw new ArgumentException($"text at {path}, got half of a pair of surrogates");
            case Tensor tensor:
                CheckTensor(tensor, path);
                tensors.Add(tensor);
                break;
            case string:
            case ScalarType dtype when Entry.Dtypes.ContainsValue(dtype):
                break;
            case ulong number:
                throw new ArgumentException($"integers of 64 bits at {path}, got {number}");
            default:
                throw new ArgumentException($"what state dicts are made of at {path}, got {Tree.Describe(value)}");
        }
    }

    /// <summary>Refuse tensors whose values are not in one dense memory, or of another dtype.</summary>
    private static void CheckTensor(Tensor tensor, string path)
    {
        if (tensor.is_sparse || tensor.device_type == DeviceType.META)
        {
            throw new ArgumentException($"a dense tensor with values at {path}, got another");
        }

        if (!Entry.Dtypes.ContainsValue(tensor.dtype))
        {
            var expected = string.Join(", ", Entry.Dtypes.Values.Select(Digest.dtype_name));
            throw new ArgumentException($"one of {expected} at {path}, got {Digest.dtype_name(tensor.dtype)}");
        }
    }
}
