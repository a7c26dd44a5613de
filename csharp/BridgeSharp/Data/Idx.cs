using System.Buffers.Binary;
using System.IO.Compression;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Data;

/// <summary>A file that is not the IDX file that was expected; the message names the file.</summary>
/// <param name="message">What was expected, and what there was.</param>
/// <param name="inner">The cause, if there is one.</param>
public sealed class IdxException(string message, Exception? inner = null) : ArgumentException(message, inner);

/// <summary>IDX files, the format of MNIST and its relatives.</summary>
public static class Idx
{
    private const byte UnsignedByte = 0x08;

    /// <summary>Read an IDX file of unsigned bytes, gzipped or not.</summary>
    /// <remarks>Spec: R10.1, R10.2. Source: http://yann.lecun.com/exdb/mnist/</remarks>
    /// <param name="path">The file; gzip is recognized by its content.</param>
    /// <returns>A fresh uint8 tensor of the shape that the file states.</returns>
    /// <exception cref="IdxException">Bad magic, another element type, damaged gzip, or another length than stated.</exception>
    /// <exception cref="FileNotFoundException">No such file.</exception>
    public static Tensor read_idx(string path)
    {
        var name = Path.GetFileName(path);
        var content = Content(path, name);
        if (content.Length < 4 || content[0] != 0 || content[1] != 0)
        {
            var magic = Convert.ToHexStringLower(content.AsSpan(0, Math.Min(2, content.Length)));
            throw new IdxException($"read_idx: expected magic 0000 in {name}, got {magic}");
        }

        if (content[2] != UnsignedByte)
        {
            throw new IdxException($"read_idx: expected unsigned bytes (08) in {name}, got {content[2]:x2}");
        }

        var rank = content[3];
        var start = 4 + (4 * rank);
        var shape = new long[rank];
        for (var axis = 0; axis < rank; axis++)
        {
            shape[axis] = Size(content, 4 + (4 * axis));
        }

        var count = shape.Aggregate(System.Numerics.BigInteger.One, (product, size) => product * size);
        if (content.Length != start + count)
        {
            throw new IdxException(
                $"read_idx: expected {start + count} bytes in {name} ({string.Join('x', shape)}), got {content.Length}");
        }

        return tensor(content[start..], dtype: uint8).reshape(shape);
    }

    /// <summary>Read one size of the header; one that the file cuts short counts the bytes that are there, as in Python.</summary>
    private static long Size(byte[] content, int at)
    {
        var word = content.AsSpan(Math.Min(at, content.Length), Math.Clamp(content.Length - at, 0, 4));
        return word.Length == 4
            ? BinaryPrimitives.ReadUInt32BigEndian(word)
            : word.ToArray().Aggregate(0L, (value, part) => (value << 8) | part);
    }

    /// <summary>Read a file, unpacked where it is gzip.</summary>
    private static byte[] Content(string path, string name)
    {
        var raw = File.ReadAllBytes(path);
        if (raw.Length < 2 || raw[0] != 0x1f || raw[1] != 0x8b)
        {
            return raw;
        }

        try
        {
            using var source = new GZipStream(new MemoryStream(raw), CompressionMode.Decompress);
            using var target = new MemoryStream();
            source.CopyTo(target);
            return target.ToArray();
        }
        catch (InvalidDataException error)
        {
            throw new IdxException($"read_idx: expected whole gzip data in {name}, got: {error.Message}", error);
        }
    }
}
