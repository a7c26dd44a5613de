using System.Buffers.Binary;
using System.IO.Compression;
using System.Numerics;
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
        CheckMagic(content, name);
        var start = 4 + (4 * content[3]);
        CheckLength(content, start, name);
        var shape = Enumerable.Range(1, content[3])
            .Select(word => (long)BinaryPrimitives.ReadUInt32BigEndian(content.AsSpan(4 * word))).ToArray();
        var whole = shape.Aggregate(BigInteger.One, (product, size) => product * size) + start;
        return content.Length == whole
            ? tensor(content[start..], dtype: uint8).reshape(shape)
            : throw new IdxException($"read_idx: expected {whole} bytes in {name} ({string.Join('x', shape)}), got {content.Length}");
    }

    /// <summary>Refuse what does not start as an IDX file of unsigned bytes does.</summary>
    private static void CheckMagic(byte[] content, string name)
    {
        CheckLength(content, 4, name);
        if (content[0] != 0 || content[1] != 0)
        {
            throw new IdxException($"read_idx: expected magic 0000 in {name}, got {Convert.ToHexStringLower(content.AsSpan(0, 2))}");
        }

        if (content[2] != UnsignedByte)
        {
            throw new IdxException($"read_idx: expected unsigned bytes (08) in {name}, got {content[2]:x2}");
        }
    }

    /// <summary>Refuse a file that ends within its header.</summary>
    private static void CheckLength(byte[] content, int header, string name)
    {
        if (content.Length < header)
        {
            throw new IdxException($"read_idx: expected a header of {header} bytes in {name}, got {content.Length}");
        }
    }

    /// <summary>Read a file, unpacked where it is gzip.</summary>
    private static byte[] Content(string path, string name)
    {
        var raw = File.ReadAllBytes(path);
        if (raw is not [0x1f, 0x8b, ..])
        {
            return raw;
        }

        using var target = new MemoryStream();
        try
        {
            using var source = new GZipStream(new MemoryStream(raw), CompressionMode.Decompress);
            source.CopyTo(target);
        }
        catch (InvalidDataException error)
        {
            throw Damaged(raw, name, error);
        }

        // The last word states the length; .NET does not notice where the end is cut off.
        var whole = raw.Length >= 4 && BinaryPrimitives.ReadUInt32LittleEndian(raw.AsSpan(raw.Length - 4)) == target.Length % (1L << 32);
        return whole ? target.ToArray() : throw Damaged(raw, name);
    }

    /// <summary>Say that gzip data is not whole.</summary>
    private static IdxException Damaged(byte[] raw, string name, Exception? cause = null)
        => new($"read_idx: expected whole gzip data in {name}, got {raw.Length} damaged bytes", cause);
}
