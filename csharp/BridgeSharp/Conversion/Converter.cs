using System.Collections;
using BridgeSharp.Checkpoint;
using BridgeSharp.Parallel;
using BridgeSharp.Parity;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Conversion;

/// <summary>Weights from one file to another.</summary>
public static class Converter
{
    private static readonly OrderedDictionary<string, ScalarType> Dtypes = new()
    {
        ["float16"] = float16,
        ["bfloat16"] = bfloat16,
        ["float32"] = float32,
        ["float64"] = float64,
    };

    /// <summary>Move weights from one file to another, with other names, another format or dtype.</summary>
    /// <remarks>Spec: R29.1, R29.3, R29.4, R29.5, R29.6.</remarks>
    /// <param name="source">The file to read, of any format.</param>
    /// <param name="target">The file to write.</param>
    /// <param name="kind">Its format: torch, safetensors, torchsharp or tree; null goes by its extension.</param>
    /// <param name="part">What to take of the source, such as <c>optimizers/0</c>.</param>
    /// <param name="names">Names and new names, with <c>*</c> for any text.</param>
    /// <param name="strip">The prefix that names lose, before they are mapped.</param>
    /// <param name="prefix">The prefix that names get, after they are mapped.</param>
    /// <param name="like">A file whose names and shapes the target must have.</param>
    /// <param name="dtype">What floating-point tensors become; others stay.</param>
    /// <param name="dry_run">Whether nothing is written.</param>
    /// <param name="force">Whether a target that is there is replaced.</param>
    /// <returns>The rows, and what did not match; then nothing was written.</returns>
    /// <exception cref="ArgumentException">Bad usage, or a file that is damaged or cannot hold the weights.</exception>
    /// <exception cref="FileNotFoundException">No such file.</exception>
    /// <exception cref="IOException">The target cannot be written; the old one is whole.</exception>
    public static Plan convert(
        string source,
        string target,
        string? kind = null,
        string? part = null,
        IReadOnlyList<KeyValuePair<string, string>>? names = null,
        string? strip = null,
        string? prefix = null,
        string? like = null,
        string? dtype = null,
        bool dry_run = false,
        bool force = false)
    {
        var written = Formats.format_for(target, kind);
        if (dtype is not null && !Dtypes.ContainsKey(dtype))
        {
            throw new ArgumentException($"convert: expected a dtype of {string.Join(", ", Dtypes.Keys)}, got '{dtype}'");
        }

        if (!Directory.Exists(Path.GetDirectoryName(Path.GetFullPath(target))))
        {
            throw new ArgumentException($"convert: expected a folder for {target}, got none");
        }

        if (Path.Exists(target) && !force)
        {
            throw new ArgumentException($"convert: expected no file {target}, or --force to replace it, got one");
        }

        using var scope = NewDisposeScope();
        using var mode = no_grad();
        var state = Formats.read_state(source, part);
        Plan plan;
        if (Formats.IsFlat(state))
        {
            var tensors = AsStateDict.as_state_dict(state);
            var expected = like is null ? null : AsStateDict.as_state_dict(Formats.read_state(like));
            (plan, state) = Placed(tensors, Names.rename(tensors.Keys, names, strip, prefix), expected, dtype is null ? null : Dtypes[dtype]);
        }
        else
        {
            var changed = names?.Count > 0 || !string.IsNullOrEmpty(strip) || !string.IsNullOrEmpty(prefix) || like is not null || dtype is not null;
            plan = Whole(state, written, changed);
        }

        if (dry_run || plan.faults.Count > 0)
        {
            return plan;
        }

        Formats.write_state(state, target, written);
        return plan with { written = true };
    }

    /// <summary>Give each tensor its name, and its dtype.</summary>
    private static (Plan Plan, OrderedDictionary<string, Tensor> State) Placed(
        OrderedDictionary<string, Tensor> tensors,
        OrderedDictionary<string, string> names,
        OrderedDictionary<string, Tensor>? like,
        ScalarType? dtype)
    {
        var old = names.ToDictionary(pair => pair.Value, pair => pair.Key);
        var cast = new OrderedDictionary<string, Tensor>(names.Select(pair => KeyValuePair.Create(pair.Value, Cast(tensors[pair.Key], dtype))));
        var (rows, faults) = like is null
            ? (new OrderedDictionary<string, Row>(cast.Select(own => KeyValuePair.Create(own.Key, Row.Of(own.Key, own.Key, own.Value)))), [])
            : Likeness.match(cast, like);
        var placed = new OrderedDictionary<string, Tensor>(rows.Select(row => KeyValuePair.Create(row.Key, cast[row.Value.source])));
        List<Row> listed = [.. rows.Values
            .Select(row => Told(row, tensors[old[row.source]], cast[row.source]))
            .Select(row => row with { source = old[row.source] })];
        return (new Plan(listed, faults), placed);
    }

    /// <summary>Change the dtype of numbers with a fraction.</summary>
    private static Tensor Cast(Tensor tensor, ScalarType? dtype)
        => dtype is { } own && tensor.is_floating_point() ? tensor.to_type(own) : tensor;

    /// <summary>Say what the new dtype did.</summary>
    private static Row Told(Row row, Tensor before, Tensor after)
    {
        if (before.dtype == after.dtype)
        {
            return row;
        }

        using var scope = NewDisposeScope();
        var lost = after.isinf().logical_and(before.isinf().logical_not()).sum().item<long>();
        string[] notes = [row.note, $"from {Digest.dtype_name(before.dtype)}", lost > 0 ? $"{lost} became infinite" : ""];
        return row with { note = string.Join(", ", notes.Where(note => note.Length > 0)) };
    }

    /// <summary>Take a tree as it is, where the format can hold it.</summary>
    private static Plan Whole(object? state, string kind, bool changed)
    {
        if (changed || kind is not ("torch" or "tree"))
        {
            var held = state is IDictionary parts ? string.Join(", ", parts.Keys.Cast<object>()) : Tree.Describe(state);
            var what = changed ? "to rename or cast" : $"for the format {kind}";
            throw new ArgumentException($"convert: expected names and tensors {what}, got a tree of {held}: choose a part");
        }

        var tensors = Document.Encode(state).Tensors;
        var texts = tensors.Select(pair => (Name: pair.Key.StartsWith(Document.Prefix, StringComparison.Ordinal) ? pair.Key[Document.Prefix.Length..] : pair.Key, pair.Value));
        return new Plan([.. texts.Select(text => Row.Of(text.Name, text.Name, text.Value))], []);
    }
}
