using System.Security.Cryptography;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Checkpoint;

/// <summary>The bytes of tensors of any size, in parts that a span can show.</summary>
internal static class TensorBytes
{
    private const int Part = 1 << 24; // elements, of 8 bytes at most

    /// <summary>Write the bytes of a tensor in row-major order (through a copy where its layout is another).</summary>
    public static void Write(Tensor tensor, Stream stream, IncrementalHash? digest = null)
    {
        using var scope = NewDisposeScope();
        using var mode = no_grad();
        foreach (var part in Parts(tensor.detach().cpu().contiguous()))
        {
            stream.Write(part.bytes);
            digest?.AppendData(part.bytes);
        }
    }

    /// <summary>Read the bytes of a fresh tensor; false where the stream ends before.</summary>
    public static bool Read(Tensor tensor, Stream stream, Action<ReadOnlySpan<byte>>? seen = null)
    {
        using var scope = NewDisposeScope();
        foreach (var part in Parts(tensor))
        {
            if (stream.ReadAtLeast(part.bytes, part.bytes.Length, throwOnEndOfStream: false) < part.bytes.Length)
            {
                return false;
            }

            seen?.Invoke(part.bytes);
        }

        return true;
    }

    /// <summary>Tell whether booleans have the bytes 0 and 1; with others PyTorch calculates anything.</summary>
    public static bool Sound(Tensor tensor)
    {
        using var scope = NewDisposeScope();
        return tensor.dtype != ScalarType.Bool || Parts(tensor).All(part => !part.bytes.ContainsAnyExceptInRange((byte)0, (byte)1));
    }

    private static IEnumerable<Tensor> Parts(Tensor tensor)
    {
        if (tensor.numel() == 0)
        {
            yield break;
        }

        var flat = tensor.reshape(-1);
        for (var start = 0L; start < flat.shape[0]; start += Part)
        {
            yield return flat.narrow(0, start, Math.Min(Part, flat.shape[0] - start));
        }
    }
}
