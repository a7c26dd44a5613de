using System.Globalization;
using System.Text.Json.Nodes;
using BridgeSharp.Parity;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Host;

/// <summary>The memory that both sides see, and the tensors in it.</summary>
/// <param name="address">Where it is mapped.</param>
/// <param name="length">Its bytes.</param>
internal readonly struct Segment(long address, long length)
{
    private const long PieceElements = 1L << 27;

    private static readonly Dictionary<string, ScalarType> Dtypes = new ScalarType[]
    {
        uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, @bool,
    }.ToDictionary(Digest.dtype_name);

    /// <summary>Find a dtype by the name that both languages have for it.</summary>
    public static ScalarType Dtype(string name) => Dtypes.TryGetValue(name, out var dtype)
        ? dtype
        : throw new ArgumentException($"facade: expected a dtype of {string.Join(", ", Dtypes.Keys)}, got {name}");

    /// <summary>Copy a tensor out of the segment.</summary>
    /// <param name="place"><c>{"dtype", "shape", "offset"}</c>.</param>
    /// <returns>A fresh tensor on the CPU.</returns>
    public Tensor Read(JsonNode place)
    {
        var dtype = Dtype((string)place["dtype"]!);
        var tensor = empty([.. place["shape"]!.AsArray().Select(size => (long)size!)], dtype: dtype);
        using var scope = NewDisposeScope();
        var offset = (long)place["offset"]!;
        foreach (var piece in Pieces(tensor))
        {
            var bytes = piece.bytes;
            Place(offset, bytes.Length).CopyTo(bytes);
            offset += bytes.Length;
        }

        return tensor;
    }

    /// <summary>Copy a tensor into the segment, in row-major order.</summary>
    public void Write(Tensor tensor, long offset)
    {
        using var scope = NewDisposeScope();
        using var mode = no_grad();
        foreach (var piece in Pieces(tensor.detach().cpu().contiguous()))
        {
            var bytes = piece.bytes;
            bytes.CopyTo(Place(offset, bytes.Length));
            offset += bytes.Length;
        }
    }

    /// <summary>Read nested arguments: tensors, tuples, lists, dictionaries and plain values.</summary>
    /// <param name="node"><c>{"tensor"}</c>, <c>{"tuple"}</c>, <c>{"list"}</c>, <c>{"dict"}</c>, <c>{"value"}</c> or <c>{"number"}</c>: one that JSON has no sign for.</param>
    /// <returns>The tree.</returns>
    public object? ReadTree(JsonNode? node)
    {
        var (kind, body) = node!.AsObject().Single();
        var segment = this;
        return kind switch
        {
            "tensor" => Read(body!),
            "list" => body!.AsArray().Select(segment.ReadTree).ToList(),
            "dict" => body!.AsObject().ToDictionary(part => part.Key, part => segment.ReadTree(part.Value)),
            "tuple" => Tuple([.. body!.AsArray().Select(segment.ReadTree)]),
            "value" => Scalars.Read(body),
            "number" => double.Parse((string)body!, CultureInfo.InvariantCulture),
            _ => throw new ArgumentException($"facade: expected tensor, tuple, list, dict, value or number, got {kind}"),
        };
    }

    private static object Tuple(object?[] parts) => parts.Length switch
    {
        1 => ValueTuple.Create(parts[0]),
        2 => (parts[0], parts[1]),
        3 => (parts[0], parts[1], parts[2]),
        4 => (parts[0], parts[1], parts[2], parts[3]),
        5 => (parts[0], parts[1], parts[2], parts[3], parts[4]),
        6 => (parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]),
        _ => throw new ArgumentException($"facade: expected a tuple of 1 to 6 parts, got {parts.Length}"),
    };

    /// <summary>Cut a contiguous tensor into pieces that a span can hold.</summary>
    private static IEnumerable<Tensor> Pieces(Tensor tensor)
    {
        var flat = tensor.view(-1);
        for (long start = 0; start < flat.NumberOfElements; start += PieceElements)
        {
            yield return flat.narrow(0, start, Math.Min(PieceElements, flat.NumberOfElements - start));
        }
    }

    private unsafe Span<byte> Place(long offset, int bytes)
        => offset >= 0 && bytes <= length - offset
            ? new Span<byte>((void*)(address + offset), bytes)
            : throw new ArgumentException($"facade: expected {bytes} bytes at {offset} inside the segment of {length}");
}
