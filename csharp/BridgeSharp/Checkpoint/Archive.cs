using System.Diagnostics.CodeAnalysis;
using System.IO.Compression;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Checkpoint;

/// <summary>The records of a file of <c>torch.save</c>, by their names below its one folder.</summary>
/// <remarks>
/// Nothing is unpacked: records are stored as they are, so they cannot hold more than the file. Spec: R26.10.
/// Source: caffe2/serialize/inline_container.h
/// </remarks>
internal sealed class Archive : IDisposable
{
    private readonly string name;
    private readonly ZipArchive? zip;
    private readonly Dictionary<string, ZipArchiveEntry> records = [];

    /// <summary>Read the directory of an open file.</summary>
    public Archive(FileStream file, string name)
    {
        this.name = name;
        var start = new byte[4];
        file.ReadAtLeast(start, 4, throwOnEndOfStream: false);
        if (start is not [(byte)'P', (byte)'K', 3, 4])
        {
            var got = start is [0x80, 2, 0x8a, 0x0a] ? "the legacy format" : "other bytes";
            Refuse("a zip file, as torch.save writes since PyTorch 1.6", got);
        }

        try
        {
            zip = new ZipArchive(file, ZipArchiveMode.Read, leaveOpen: true);
            Check([.. zip.Entries], file.Length);
        }
        catch (InvalidDataException)
        {
            Refuse("a whole zip file", "a damaged one");
        }

        if (records.ContainsKey("constants.pkl"))
        {
            Refuse("a file of torch.save", "a TorchScript archive");
        }

        if (records.ContainsKey("byteorder") && !Read("byteorder").AsSpan().SequenceEqual("little"u8))
        {
            Refuse("little-endian bytes", "others");
        }
    }

    /// <summary>Read a record.</summary>
    public byte[] Read(string record)
    {
        var content = new byte[Size(record)];
        Open(record, (stream, crc) =>
        {
            var count = stream.ReadAtLeast(content, content.Length, throwOnEndOfStream: false);
            crc.Append(content);
            return count == content.Length;
        });
        return content;
    }

    /// <summary>Read a record into a tensor of its size, and check its CRC.</summary>
    public void ReadInto(string record, Tensor tensor)
        => Open(record, (stream, crc) => TensorBytes.Read(tensor, stream, crc.Append));

    /// <summary>Return the number of bytes of a record.</summary>
    public long Size(string record)
    {
        if (!records.TryGetValue(record, out var entry))
        {
            Refuse($"a record {record}", "none");
            return 0;
        }

        return entry.Length;
    }

    /// <summary>Say what the file should have had.</summary>
    [DoesNotReturn]
    public void Refuse(string expected, string got) => throw new CheckpointException($"load: expected {expected} in {name}, got {got}");

    /// <inheritdoc/>
    public void Dispose() => zip?.Dispose();

    private void Open(string record, Func<Stream, Crc32, bool> read)
    {
        var (whole, crc) = (false, new Crc32());
        try
        {
            using var stream = records[record].Open();
            whole = read(stream, crc) && stream.ReadByte() < 0;
        }
        catch (InvalidDataException)
        {
            // Said below.
        }

        if (!whole || crc.Value != records[record].Crc32)
        {
            Refuse($"a whole record {record}", "a damaged one");
        }
    }

    /// <summary>List the records by name, where the directory is as PyTorch writes it.</summary>
    private void Check(List<ZipArchiveEntry> entries, long length)
    {
        var root = entries.Count > 0 ? entries[0].FullName.Split('/')[0] : "";
        foreach (var entry in entries)
        {
            var parts = entry.FullName.Split('/');
            var record = string.Join('/', parts.Skip(1));
            if (parts[0] != root || parts.Length == 1 || parts.Any(part => part is "" or "." or "..") || entry.FullName.Contains('\\', StringComparison.Ordinal))
            {
                Refuse("records in one folder", $"'{entry.FullName}'");
            }

            if (entry.CompressedLength != entry.Length || entry.IsEncrypted)
            {
                Refuse("records as they are", $"{record} compressed or encrypted");
            }

            if (!records.TryAdd(record, entry))
            {
                Refuse("every record once", $"{record} twice");
            }
        }

        var total = entries.Sum(entry => (decimal)entry.Length);
        if (total > length)
        {
            Refuse($"records of at most {length} bytes", $"{total}");
        }
    }
}
