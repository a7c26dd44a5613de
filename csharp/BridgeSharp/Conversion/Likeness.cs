using BridgeSharp.Parallel;
using BridgeSharp.Parity;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Conversion;

/// <summary>Weights brought under the names of another file.</summary>
public static class Likeness
{
    /// <summary>Find a place for each tensor among those of a file: by name, then by shape and order.</summary>
    /// <remarks>Spec: R29.4.</remarks>
    /// <param name="tensors">What is to be placed.</param>
    /// <param name="like">The names and shapes to fill.</param>
    /// <returns>
    /// A row for each tensor that has a place, by the name of that place and in the order of <paramref name="like"/>; and a
    /// line for each that has none, and for each place that stays empty.
    /// </returns>
    public static (OrderedDictionary<string, Row> Rows, List<string> Faults) match(
        IReadOnlyDictionary<string, Tensor> tensors, IReadOnlyDictionary<string, Tensor> like)
    {
        List<string> faults = [.. tensors
            .Where(own => like.TryGetValue(own.Key, out var place) && !place.shape.SequenceEqual(own.Value.shape))
            .Select(own => $"shape differs: {own.Key} is {Text.Shape(own.Value.shape)}, expected {Text.Shape(like[own.Key].shape)}")];
        var left = new OrderedDictionary<string, Tensor>(tensors.Where(own => !like.ContainsKey(own.Key)));
        var rows = new OrderedDictionary<string, Row>();
        foreach (var (name, place) in like)
        {
            if (tensors.TryGetValue(name, out var same))
            {
                if (same.shape.SequenceEqual(place.shape))
                {
                    rows[name] = Row.Of(name, name, same, Note("", same, place));
                }

                continue;
            }

            List<string> fitting = [.. left.Where(own => own.Value.shape.SequenceEqual(place.shape)).Select(own => own.Key)];
            if (fitting.Count == 0)
            {
                faults.Add($"missing: {name} {Text.Shape(place.shape)}, no tensor of its name or shape left");
                continue;
            }

            _ = left.Remove(fitting[0], out var tensor);
            var note = fitting.Count == 1 ? "by shape" : $"by shape and order, first of {fitting.Count}";
            rows[name] = Row.Of(fitting[0], name, tensor!, Note(note, tensor!, place));
        }

        faults.AddRange(left.Select(own => $"unexpected: {own.Key} {Text.Shape(own.Value.shape)}, no place of its name or shape left"));
        return (rows, faults);
    }

    /// <summary>Add what differs without being refused.</summary>
    private static string Note(string text, Tensor tensor, Tensor place)
    {
        var dtype = tensor.dtype == place.dtype ? "" : $"there {Digest.dtype_name(place.dtype)}";
        return string.Join(", ", new[] { text, dtype }.Where(part => part.Length > 0));
    }
}
