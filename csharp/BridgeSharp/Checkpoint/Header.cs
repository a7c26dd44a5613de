using System.Diagnostics.CodeAnalysis;
using System.Text;
using System.Text.Json;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Checkpoint;

/// <summary>One tensor: its name, its dtype, its shape, and where its bytes begin and end in the data.</summary>
internal sealed record Entry(string Name, ScalarType Dtype, long[] Shape, long Begin, long End);

/// <summary>The header of a safetensors file: what it says of each tensor, and whether that can be.</summary>
/// <param name="Metadata">Its texts.</param>
/// <param name="Entries">Its tensors, in the order of the header.</param>
internal sealed record Header(OrderedDictionary<string, string> Metadata, IReadOnlyList<Entry> Entries)
{
    /// <summary>The longest header in bytes, as in the safetensors library.</summary>
    public const int Limit = 100_000_000;

    /// <summary>The dtypes that PyTorch and TorchSharp share.</summary>
    public static readonly OrderedDictionary<string, ScalarType> Dtypes = new()
    {
        ["BOOL"] = @bool,
        ["U8"] = uint8,
        ["I8"] = int8,
        ["I16"] = int16,
        ["I32"] = int32,
        ["I64"] = int64,
        ["F16"] = float16,
        ["BF16"] = bfloat16,
        ["F32"] = float32,
        ["F64"] = float64,
    };

    private static readonly UTF8Encoding Strict = new(encoderShouldEmitUTF8Identifier: false, throwOnInvalidBytes: true);

    /// <summary>Read a header strictly.</summary>
    /// <remarks>Spec: R26.2. Source: https://huggingface.co/docs/safetensors/index#format</remarks>
    /// <param name="content">Its bytes.</param>
    /// <param name="data">The number of bytes that follow it.</param>
    /// <param name="name">The file's, for errors.</param>
    /// <exception cref="CheckpointException">No such header, or one that the data cannot have.</exception>
    public static Header Parse(ReadOnlySpan<byte> content, long data, string name)
    {
        var members = Once(Json(content, name), name);
        var metadata = members.Remove("__metadata__", out var texts) ? Texts(texts, name) : [];
        List<Entry> entries = [.. members.Select(member => Read(member.Key, member.Value, name))];
        CheckPlaces(entries, data, name);
        return new Header(metadata, entries);
    }

    /// <summary>Say what a file should have had.</summary>
    [DoesNotReturn]
    public static void Refuse(string expected, string name, string got)
        => throw new CheckpointException($"safetensors: expected {expected} in {name}, got {got}");

    /// <summary>Return the bytes of one element.</summary>
    public static long ItemSize(ScalarType dtype) => dtype switch
    {
        ScalarType.Bool or ScalarType.Byte or ScalarType.Int8 => 1,
        ScalarType.Int16 or ScalarType.Float16 or ScalarType.BFloat16 => 2,
        ScalarType.Int32 or ScalarType.Float32 => 4,
        _ => 8,
    };

    /// <summary>Parse the object that a header is.</summary>
    private static JsonElement Json(ReadOnlySpan<byte> content, string name)
    {
        var text = "";
        try
        {
            text = Strict.GetString(content);
        }
        catch (DecoderFallbackException)
        {
            Refuse("a header in UTF-8", name, "other bytes");
        }

        if (!text.StartsWith('{') || JsonText.Parse(text) is not { } parsed)
        {
            Refuse("an object of JSON as header", name, "other text");
            return default;
        }

        return parsed;
    }

    /// <summary>Refuse names that are there twice.</summary>
    private static OrderedDictionary<string, JsonElement> Once(JsonElement value, string name)
    {
        var members = new OrderedDictionary<string, JsonElement>();
        foreach (var member in value.EnumerateObject())
        {
            if (!members.TryAdd(member.Name, member.Value))
            {
                Refuse("every name once", name, $"'{member.Name}' twice");
            }
        }

        return members;
    }

    /// <summary>Read names and texts.</summary>
    private static OrderedDictionary<string, string> Texts(JsonElement value, string name)
    {
        if (value.ValueKind != JsonValueKind.Object || value.EnumerateObject().Any(member => member.Value.ValueKind != JsonValueKind.String))
        {
            Refuse("names and strings as __metadata__", name, "other JSON");
        }

        return new(Once(value, name).Select(member => KeyValuePair.Create(member.Key, member.Value.GetString()!)));
    }

    /// <summary>Read what is said of one tensor.</summary>
    private static Entry Read(string key, JsonElement value, string name)
    {
        var members = value.ValueKind == JsonValueKind.Object ? Once(value, name) : [];
        if (!members.Keys.Order(StringComparer.Ordinal).SequenceEqual(["data_offsets", "dtype", "shape"]))
        {
            Refuse($"dtype, shape and data_offsets of '{key}'", name, "other JSON");
        }

        var kind = members["dtype"].ValueKind == JsonValueKind.String ? members["dtype"].GetString() : null;
        if (kind is null || !Dtypes.TryGetValue(kind, out var dtype))
        {
            Refuse($"one of {string.Join(", ", Dtypes.Keys)} as dtype of '{key}'", name, kind is null ? "other JSON" : $"'{kind}'");
            return null!;
        }

        if (Whole(members["shape"]) is not { } shape)
        {
            Refuse($"whole numbers from 0 as shape of '{key}'", name, "others");
            return null!;
        }

        if (Whole(members["data_offsets"]) is not [var begin, var end])
        {
            Refuse($"two whole numbers from 0 as data_offsets of '{key}'", name, "others");
            return null!;
        }

        var entry = new Entry(key, dtype, shape, begin, end);
        CheckSize(entry, name);
        return entry;
    }

    /// <summary>Read a list of whole numbers of 63 bits, or null where it is another.</summary>
    private static long[]? Whole(JsonElement value)
    {
        if (value.ValueKind != JsonValueKind.Array)
        {
            return null;
        }

        List<long> numbers = [];
        foreach (var item in value.EnumerateArray())
        {
            if (item.ValueKind != JsonValueKind.Number || !item.TryGetInt64(out var number) || number < 0)
            {
                return null;
            }

            numbers.Add(number);
        }

        return [.. numbers];
    }

    /// <summary>Compare shape and dtype with the number of bytes, without an overflow.</summary>
    private static void CheckSize(Entry entry, string name)
    {
        Int128 bytes = ItemSize(entry.Dtype), reach = bytes;
        foreach (var size in entry.Shape)
        {
            bytes *= size;

            // Strides grow by the sizes that are not 0, also where there is no element.
            reach *= Math.Max(size, 1);
            if (reach > long.MaxValue)
            {
                Refuse($"less than 2**63 bytes of '{entry.Name}'", name, $"shape [{string.Join(", ", entry.Shape)}]");
            }
        }

        if (entry.End - entry.Begin != bytes)
        {
            Refuse($"{bytes} bytes of '{entry.Name}'", name, $"offsets {entry.Begin} to {entry.End}");
        }
    }

    /// <summary>Let the tensors fill the data, each from the end of the one before.</summary>
    private static void CheckPlaces(IReadOnlyList<Entry> entries, long data, string name)
    {
        var (place, before) = (0L, "");
        foreach (var entry in entries.OrderBy(entry => (entry.Begin, entry.End)))
        {
            if (entry.End > data)
            {
                Refuse($"{entry.End} bytes of data for '{entry.Name}'", name, $"{data}");
            }

            if (entry.Begin < place)
            {
                Refuse("tensors apart from each other", name, $"'{entry.Name}' from {entry.Begin}, before '{before}' ends at {place}");
            }

            if (entry.Begin > place)
            {
                Refuse("no hole", name, $"one from {place} to {entry.Begin}");
            }

            (place, before) = (entry.End, entry.Name);
        }

        if (place != data)
        {
            Refuse($"{place} bytes of data", name, $"{data}");
        }
    }
}
