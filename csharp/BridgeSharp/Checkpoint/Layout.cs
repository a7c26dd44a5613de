using System.Buffers.Binary;
using System.Globalization;
using System.Text;
using BridgeSharp.Parity;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Checkpoint;

/// <summary>What a safetensors file says before its data.</summary>
internal static class Layout
{
    private const int Alignment = 8;
    private static readonly Dictionary<ScalarType, string> Names = Entry.Dtypes.ToDictionary(pair => pair.Value, pair => pair.Key);

    /// <summary>Refuse what is no text that UTF-8 can write.</summary>
    public static void CheckText(string text, string what)
    {
        if (!JsonText.IsText(text))
        {
            throw new ArgumentException($"safetensors: expected text as {what}, got half of a pair of surrogates");
        }
    }

    /// <summary>Refuse what the format cannot hold.</summary>
    public static void Check(string name, Tensor tensor)
    {
        CheckText(name, "name");
        if (name == "__metadata__")
        {
            throw new ArgumentException("safetensors: expected another name than '__metadata__', got it for a tensor");
        }

        if (tensor is null || tensor.is_sparse || tensor.device_type == DeviceType.META)
        {
            throw new ArgumentException($"safetensors: expected a dense tensor with values as '{name}', got another");
        }

        if (!Names.ContainsKey(tensor.dtype))
        {
            var expected = string.Join(", ", Names.Keys.Select(Digest.dtype_name));
            throw new ArgumentException($"safetensors: expected one of {expected} for '{name}', got {Digest.dtype_name(tensor.dtype)}");
        }
    }

    /// <summary>Write the start of a file: the length of the header, and the header, padded with spaces.</summary>
    public static byte[] Content(
        IReadOnlyDictionary<string, Tensor> tensors, IEnumerable<string> order, IReadOnlyDictionary<string, string> metadata)
    {
        var (ends, end) = (new Dictionary<string, long>(), 0L);
        foreach (var name in order)
        {
            ends[name] = end += Size(tensors[name]);
        }

        List<string> members = [];
        if (metadata.Count > 0)
        {
            var texts = metadata.Select(text => $"{JsonText.Quoted(text.Key)}:{JsonText.Quoted(text.Value)}");
            members.Add($"\"__metadata__\":{{{string.Join(',', texts)}}}");
        }

        members.AddRange(tensors.Select(pair => string.Create(
            CultureInfo.InvariantCulture,
            $"{JsonText.Quoted(pair.Key)}:{{\"dtype\":\"{Names[pair.Value.dtype]}\",\"shape\":[{string.Join(',', pair.Value.shape)}],\"data_offsets\":[{ends[pair.Key] - Size(pair.Value)},{ends[pair.Key]}]}}")));
        var header = Encoding.ASCII.GetBytes($"{{{string.Join(',', members)}}}");
        var padded = (header.Length + Alignment - 1) / Alignment * Alignment;
        if (padded > Header.Limit)
        {
            throw new ArgumentException($"safetensors: expected a header of at most {Header.Limit} bytes, got {padded}");
        }

        var start = new byte[8 + padded];
        BinaryPrimitives.WriteInt64LittleEndian(start, padded);
        start.AsSpan(8).Fill((byte)' ');
        header.CopyTo(start, 8);
        return start;
    }

    private static long Size(Tensor tensor) => tensor.numel() * Entry.ItemSize(tensor.dtype);
}
