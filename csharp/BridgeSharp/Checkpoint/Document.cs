using System.Buffers.Binary;
using System.Globalization;
using System.Text.Json;
using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Checkpoint;

/// <summary>A tree as a text of JSON, with names in the places of its tensors.</summary>
internal static class Document
{
    private const int Depth = 100;

    /// <summary>What the names of tensors outside of <c>model</c> start with.</summary>
    internal const string Prefix = "__bridge__";

    /// <summary>Write a tree as JSON, and list its tensors by name.</summary>
    /// <remarks>
    /// Numbers, texts, booleans and null are JSON's own, a list is an array; <c>{"tuple": [...]}</c>,
    /// <c>{"dict": [[key, value], ...]}</c>, <c>{"tensor": name}</c> and, for what is not finite, <c>{"float": bits}</c> are
    /// the rest. A tensor that is directly in the dict under <c>model</c> has its key as name. Spec: R26.4.
    /// </remarks>
    /// <param name="tree">Dictionaries, lists, tuples, arrays, tensors, numbers, texts, booleans and null.</param>
    /// <returns>The text, and the tensors.</returns>
    /// <exception cref="ArgumentException">Something else, too many levels, or an integer beyond 64 bits.</exception>
    public static (string Text, OrderedDictionary<string, Tensor> Tensors) Encode(object? tree)
    {
        var tensors = new OrderedDictionary<string, Tensor>();
        return (Form(tree, "", tensors, 0), tensors);
    }

    /// <summary>Read a tree from JSON and tensors.</summary>
    /// <remarks>Spec: R26.4.</remarks>
    /// <param name="text">The JSON.</param>
    /// <param name="tensors">What its names stand for; each takes one place.</param>
    /// <param name="name">The file's, for errors.</param>
    /// <exception cref="CheckpointException">No such tree, or other tensors.</exception>
    public static object? Decode(string text, IReadOnlyDictionary<string, Tensor> tensors, string name)
    {
        var left = new OrderedDictionary<string, Tensor>(tensors);
        object? tree;
        try
        {
            tree = Value(JsonText.Parse(text) ?? throw new InvalidDataException(), left, 0);
        }
        catch (Exception error) when (error is InvalidDataException or InvalidOperationException or FormatException)
        {
            throw new CheckpointException($"read: expected a tree in {name}, got other JSON", error);
        }

        return left.Count == 0
            ? tree
            : throw new CheckpointException($"read: expected a place for every tensor in {name}, got none for '{left.GetAt(0).Key}'");
    }

    /// <summary>Write one value.</summary>
    private static string Form(object? value, string path, OrderedDictionary<string, Tensor> tensors, int depth)
    {
        if (depth > Depth)
        {
            throw new ArgumentException($"write: expected at most {Depth} levels, got more");
        }

        if (value is Tensor tensor)
        {
            // The path of a place is of that place alone.
            tensors[Prefix + path] = tensor;
            return $"{{\"tensor\":{JsonText.Quoted(Prefix + path)}}}";
        }

        var container = Container.Of(value);
        if (container is null or RecordContainer)
        {
            return Scalar(value, path);
        }

        var parts = container.Parts(value!, path);
        if (container.IsDictionary)
        {
            return $"{{\"dict\":[{string.Join(',', Pairs(parts, path, tensors, depth))}]}}";
        }

        var items = string.Join(',', parts.Select(part => Form(part.Value, part.Path, tensors, depth + 1)));
        return container.IsList && value is not Array ? $"[{items}]" : $"{{\"tuple\":[{items}]}}";
    }

    /// <summary>Write the pairs of a dict; those under <c>model</c> name their tensors.</summary>
    private static List<string> Pairs(IEnumerable<Part> parts, string path, OrderedDictionary<string, Tensor> tensors, int depth)
    {
        var keys = new HashSet<string>();
        List<string> pairs = [];
        foreach (var part in parts)
        {
            if (part.Key is not (string or int or long or short or byte or uint))
            {
                throw new ArgumentException($"write: expected keys of type str or int at tree{path}, got {Tree.Describe(part.Key)}");
            }

            var key = Scalar(part.Key, path);
            if (!keys.Add(key))
            {
                throw new ArgumentException($"write: expected every key once at tree{path}, got {key} twice");
            }

            if (path == "[\"model\"]" && part.Value is Tensor own && part.Key is string name && !name.StartsWith("__", StringComparison.Ordinal))
            {
                tensors[name] = own;
                pairs.Add($"[{key},{{\"tensor\":{key}}}]");
            }
            else
            {
                pairs.Add($"[{key},{Form(part.Value, $"{path}[{key}]", tensors, depth + 1)}]");
            }
        }

        return pairs;
    }

    /// <summary>Write a value without parts.</summary>
    private static string Scalar(object? value, string path) => value switch
    {
        null => "null",
        bool flag => flag ? "true" : "false",
        double number => Number(number),
        float number => Number(number),
        sbyte or byte or short or ushort or int or uint or long => string.Create(CultureInfo.InvariantCulture, $"{value}"),
        ulong number => number <= long.MaxValue
            ? string.Create(CultureInfo.InvariantCulture, $"{number}")
            : throw new ArgumentException($"write: expected an integer of 64 bits at tree{path}, got {number}"),
        string text => JsonText.IsText(text)
            ? JsonText.Quoted(text)
            : throw new ArgumentException($"write: expected text at tree{path}, got half of a pair of surrogates"),
        _ => throw new ArgumentException(
            $"write: expected a dict, list, tuple, tensor, number, text, boolean or None at tree{path}, got {Tree.Describe(value)}"),
    };

    private static string Number(double value)
        => double.IsFinite(value) ? JsonText.Number(value) : $"{{\"float\":\"{BitConverter.DoubleToInt64Bits(value):x16}\"}}";

    /// <summary>Read one value; whatever is not as written throws.</summary>
    private static object? Value(JsonElement form, OrderedDictionary<string, Tensor> left, int depth)
    {
        if (depth > Depth)
        {
            throw new InvalidDataException();
        }

        if (form.ValueKind == JsonValueKind.Array)
        {
            return Items(form, left, depth).ToList();
        }

        if (form.ValueKind != JsonValueKind.Object)
        {
            return Plain(form);
        }

        List<JsonProperty> members = [.. form.EnumerateObject()];
        var content = members.Count == 1 ? members[0].Value : throw new InvalidDataException();
        return members[0].Name switch
        {
            "tensor" when content.GetString() is { } name && left.Remove(name, out var tensor) => tensor,
            "tuple" => Items(content, left, depth).ToArray(),
            "dict" => Dict(content, left, depth),
            "float" when Convert.FromHexString(content.GetString() ?? "") is { Length: 8 } bits => BinaryPrimitives.ReadDoubleBigEndian(bits),
            _ => throw new InvalidDataException(),
        };
    }

    private static IEnumerable<object?> Items(JsonElement content, OrderedDictionary<string, Tensor> left, int depth)
        => content.EnumerateArray().Select(item => Value(item, left, depth + 1));

    /// <summary>Read a number, text, boolean or null.</summary>
    private static object? Plain(JsonElement form) => form.ValueKind switch
    {
        JsonValueKind.Null => null,
        JsonValueKind.String => form.GetString(),
        JsonValueKind.Number when form.GetRawText().AsSpan().IndexOfAny(".eE") >= 0
            => form.GetDouble() is var number && double.IsFinite(number) ? number : throw new InvalidDataException(),
        JsonValueKind.Number => form.GetInt64(),
        _ => form.GetBoolean(),
    };

    /// <summary>Read pairs, each key once.</summary>
    private static OrderedDictionary<object, object?> Dict(JsonElement content, OrderedDictionary<string, Tensor> left, int depth)
    {
        var result = new OrderedDictionary<object, object?>();
        foreach (var pair in content.EnumerateArray())
        {
            if (pair.GetArrayLength() != 2 || Plain(pair[0]) is not (string or long) || !result.TryAdd(Plain(pair[0])!, Value(pair[1], left, depth + 1)))
            {
                throw new InvalidDataException();
            }
        }

        return result;
    }
}
