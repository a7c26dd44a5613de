using System.Buffers.Binary;
using System.Security.Cryptography;
using System.Text;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Checkpoint;

/// <summary>Files of named tensors in the safetensors format, which plain tools open.</summary>
public static class Safetensors
{
    /// <summary>The text of the metadata that holds the digest of the file, in which it counts as zeros.</summary>
    internal const string Seal = "bridge_sha256";

    /// <summary>What is in its place while the digest is calculated.</summary>
    internal static readonly string Unsealed = new('0', 64);

    /// <summary>Write named tensors to a safetensors file, in place of the old one as a whole.</summary>
    /// <remarks>
    /// The header keeps the order of the names; the data of larger elements comes first, so that every tensor is aligned.
    /// Tensors that share storage are written once for each name. Spec: R26.1, R26.7.
    /// Source: https://huggingface.co/docs/safetensors/index#format
    /// </remarks>
    /// <param name="tensors">Names and tensors of any device, shape and strides.</param>
    /// <param name="path">The file.</param>
    /// <param name="metadata">Names and texts to put beside them.</param>
    /// <exception cref="ArgumentException">
    /// A dtype that the format does not share with both languages, a tensor without values of its own (sparse, meta), or a
    /// name that is taken or no text.
    /// </exception>
    /// <exception cref="IOException">The file cannot be written; the old one is whole.</exception>
    public static void save_file(IReadOnlyDictionary<string, Tensor> tensors, string path, IReadOnlyDictionary<string, string>? metadata = null)
        => Store(tensors, path, metadata ?? new Dictionary<string, string>());

    /// <summary>Read the tensors of a safetensors file, whoever made it.</summary>
    /// <remarks>Spec: R26.1, R26.2.</remarks>
    /// <param name="path">The file.</param>
    /// <returns>Names and fresh tensors on the CPU, in the order of the header.</returns>
    /// <exception cref="CheckpointException">The file is not a whole and sound safetensors file.</exception>
    /// <exception cref="FileNotFoundException">No such file.</exception>
    public static OrderedDictionary<string, Tensor> load_file(string path)
    {
        using var file = File.OpenRead(path);
        var name = Path.GetFileName(path);
        return Values(file, Head(file, name).Header, name);
    }

    /// <summary>Read the metadata of a safetensors file.</summary>
    /// <remarks>Spec: R26.1, R26.2.</remarks>
    /// <param name="path">The file.</param>
    /// <returns>Names and texts.</returns>
    /// <exception cref="CheckpointException">The file is not a whole and sound safetensors file.</exception>
    /// <exception cref="FileNotFoundException">No such file.</exception>
    public static OrderedDictionary<string, string> load_metadata(string path)
    {
        using var file = File.OpenRead(path);
        return Head(file, Path.GetFileName(path)).Header.Metadata;
    }

    /// <summary>Write tensors and metadata; where the metadata has a place for the digest, fill it.</summary>
    internal static void Store(IReadOnlyDictionary<string, Tensor> tensors, string path, IReadOnlyDictionary<string, string> metadata)
    {
        foreach (var (name, tensor) in tensors)
        {
            Layout.Check(name, tensor);
        }

        foreach (var text in metadata.SelectMany(pair => new[] { pair.Key, pair.Value }))
        {
            Layout.CheckText(text, "metadata");
        }

        List<string> order = [.. tensors.Keys.OrderByDescending(name => Entry.ItemSize(tensors[name].dtype))];
        var start = Layout.Content(tensors, order, metadata);
        using var digest = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
        digest.AppendData(start);
        Atomic.Replace(path, file =>
        {
            file.Write(start);
            order.ForEach(name => TensorBytes.Write(tensors[name], file, digest));
            if (metadata.GetValueOrDefault(Seal) == Unsealed)
            {
                file.Position = start.AsSpan().IndexOf(Sealed(Unsealed));
                file.Write(Sealed(Convert.ToHexStringLower(digest.GetHashAndReset())));
            }
        });
    }

    /// <summary>Read the start of a file, up to its data: the bytes, and what they say.</summary>
    internal static (byte[] Start, Header Header) Head(FileStream file, string name)
    {
        var length = new byte[8];
        var count = file.ReadAtLeast(length, 8, throwOnEndOfStream: false);
        if (count < 8)
        {
            Entry.Refuse("at least 8 bytes", name, $"{count}");
        }

        var stated = BinaryPrimitives.ReadUInt64LittleEndian(length);
        if (stated > Header.Limit)
        {
            Entry.Refuse($"a header of at most {Header.Limit} bytes", name, $"{stated}");
        }

        var data = file.Length - 8 - (long)stated;
        if (data < 0)
        {
            Entry.Refuse($"a header of {stated} bytes", name, $"{file.Length - 8}");
        }

        var header = new byte[stated];
        file.ReadExactly(header);
        return ([.. length, .. header], Header.Parse(header, data, name));
    }

    /// <summary>Read the data of a file, each byte once, straight into the tensors.</summary>
    internal static OrderedDictionary<string, Tensor> Values(FileStream file, Header header, string name, IncrementalHash? digest = null)
    {
        using var scope = NewDisposeScope();
        var tensors = new OrderedDictionary<string, Tensor>(
            header.Entries.Select(entry => KeyValuePair.Create(entry.Name, empty(entry.Shape, entry.Dtype))));
        foreach (var entry in header.Entries.OrderBy(entry => (entry.Begin, entry.End)))
        {
            var tensor = tensors[entry.Name];
            if (!TensorBytes.Read(tensor, file, part => digest?.AppendData(part)))
            {
                Entry.Refuse($"{entry.End - entry.Begin} bytes of '{entry.Name}'", name, "less");
            }

            if (!TensorBytes.Sound(tensor))
            {
                Entry.Refuse($"bytes 0 and 1 as booleans of '{entry.Name}'", name, "others");
            }
        }

        foreach (var tensor in tensors.Values)
        {
            tensor.MoveToOuterDisposeScope();
        }

        return tensors;
    }

    /// <summary>Calculate the digest of the start of a file, with zeros in its own place.</summary>
    internal static IncrementalHash Begin(byte[] start, IReadOnlyDictionary<string, string> metadata)
    {
        var seal = Sealed(metadata[Seal]);
        var place = start.AsSpan().IndexOf(seal);
        var digest = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
        if (place >= 0)
        {
            digest.AppendData(start.AsSpan(0, place));
            digest.AppendData(Sealed(Unsealed));
            digest.AppendData(start.AsSpan(place + seal.Length));
        }
        else
        {
            digest.AppendData(start);
        }

        return digest;
    }

    /// <summary>Write the digest as the header has it: once, because quotes inside of texts are escaped.</summary>
    private static byte[] Sealed(string digest) => Encoding.UTF8.GetBytes($"\"{Seal}\":\"{digest}\"");
}
