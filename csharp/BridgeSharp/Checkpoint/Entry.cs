using System.Diagnostics.CodeAnalysis;
using System.Text.Json;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Checkpoint;

/// <summary>One tensor: its name, its dtype, its shape, and where its bytes begin and end in the data.</summary>
internal sealed record Entry(string Name, ScalarType Dtype, long[] Shape, long Begin, long End)
{
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

    /// <summary>Read what is said of one tensor.</summary>
    public static Entry Read(string key, JsonElement value, string name)
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

    /// <summary>Refuse names that are there twice.</summary>
    public static OrderedDictionary<string, JsonElement> Once(JsonElement value, string name)
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
}
