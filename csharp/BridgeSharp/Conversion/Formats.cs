using System.Buffers.Binary;
using System.Collections;
using System.Globalization;
using BridgeSharp.Checkpoint;
using static TorchSharp.torch;

namespace BridgeSharp.Conversion;

/// <summary>The formats of weights: found by content, chosen by extension.</summary>
public static class Formats
{
    private static readonly OrderedDictionary<string, string> Extensions = new()
    {
        [".pt"] = "torch",
        [".pth"] = "torch",
        [".safetensors"] = "safetensors",
        [".dat"] = "torchsharp",
    };

    private static readonly OrderedDictionary<string, Func<string, object?>> Readers = new()
    {
        ["torch"] = TorchFile.load,
        ["safetensors"] = Safetensors.load_file,
        ["torchsharp"] = TorchsharpFile.load_torchsharp,
        ["tree"] = TreeFile.read,
    };

    /// <summary>Tell the format of a file by its content: torch, safetensors, tree or torchsharp.</summary>
    /// <remarks>Spec: R29.1.</remarks>
    /// <exception cref="CheckpointException">A safetensors file that is damaged.</exception>
    /// <exception cref="FileNotFoundException">No such file.</exception>
    public static string detect(string path)
    {
        var start = new byte[9];
        int count;
        using (var file = File.OpenRead(path))
        {
            count = file.ReadAtLeast(start, start.Length, throwOnEndOfStream: false);
        }

        if (count >= 4 && (start.AsSpan().StartsWith("PK\x03\x04"u8) || start.AsSpan().StartsWith((ReadOnlySpan<byte>)[0x80, 0x02, 0x8A, 0x0A])))
        {
            return "torch";
        }

        if (count == start.Length && start[8] == '{' && BinaryPrimitives.ReadUInt64LittleEndian(start) <= Header.Limit)
        {
            return Safetensors.load_metadata(path).ContainsKey("bridge_tree") ? "tree" : "safetensors";
        }

        return "torchsharp";
    }

    /// <summary>Choose the format to write: the one that is given, else by the extension of the file.</summary>
    /// <remarks>Spec: R29.1.</remarks>
    /// <exception cref="ArgumentException">An extension that says nothing, or no such format.</exception>
    public static string format_for(string path, string? kind = null)
    {
        if (kind is not null)
        {
            return Readers.ContainsKey(kind)
                ? kind
                : throw new ArgumentException($"convert: expected a format of {string.Join(", ", Readers.Keys)}, got '{kind}'");
        }

        var extension = Path.GetExtension(path);
        return Extensions.TryGetValue(extension.ToLowerInvariant(), out var found)
            ? found
            : throw new ArgumentException(
                $"convert: expected a format, or an extension of {string.Join(", ", Extensions.Keys)}, got '{extension}'");
    }

    /// <summary>Read a file of any of the formats, or a part of it.</summary>
    /// <remarks>Spec: R29.1.</remarks>
    /// <param name="path">The file.</param>
    /// <param name="part">
    /// Keys and indices with <c>/</c> between them, such as <c>optimizers/0</c>; null is the <c>model</c> of a training
    /// checkpoint, and the whole of another file.
    /// </param>
    /// <returns>The tree, with fresh tensors on the CPU.</returns>
    /// <exception cref="CheckpointException">The file is damaged, or none of these.</exception>
    /// <exception cref="ArgumentException">No such part.</exception>
    /// <exception cref="FileNotFoundException">No such file.</exception>
    public static object? read_state(string path, string? part = null)
    {
        var kind = detect(path);
        var value = Readers[kind](path);
        if (part is null)
        {
            return kind == "tree" && value is IDictionary tree && tree.Contains("model") ? tree["model"] : value;
        }

        return part.Split('/').Aggregate(value, (inner, key) => Inside(inner, key, part));
    }

    /// <summary>Write names and tensors in any of the formats, other trees as torch or tree.</summary>
    /// <remarks>Spec: R29.1.</remarks>
    /// <exception cref="ArgumentException">What the format cannot hold.</exception>
    /// <exception cref="IOException">The file cannot be written; the old one is whole.</exception>
    public static void write_state(object? state, string path, string kind)
    {
        switch (kind)
        {
            case "torch":
                TorchFile.save(state, path);
                break;
            case "tree":
                TreeFile.write(IsFlat(state) ? new OrderedDictionary<string, object?> { ["model"] = state } : state, path);
                break;
            case "safetensors":
                Safetensors.save_file(AsStateDict.as_state_dict(state), path);
                break;
            default:
                TorchsharpFile.save_torchsharp(AsStateDict.as_state_dict(state), path);
                break;
        }
    }

    /// <summary>Tell whether a tree is names and tensors.</summary>
    internal static bool IsFlat(object? state)
        => state is IDictionary parts && parts.Keys.Cast<object>().All(key => key is string) && parts.Values.Cast<object?>().All(value => value is Tensor);

    /// <summary>Take one step into a tree.</summary>
    private static object? Inside(object? value, string key, string part)
    {
        var got = "no parts";
        if (value is IDictionary dictionary)
        {
            foreach (DictionaryEntry entry in dictionary)
            {
                if (string.Create(CultureInfo.InvariantCulture, $"{entry.Key}") == key)
                {
                    return entry.Value;
                }
            }

            got = string.Join(", ", dictionary.Keys.Cast<object>());
        }
        else if (value is IList list)
        {
            if (int.TryParse(key, NumberStyles.None, CultureInfo.InvariantCulture, out var index) && index < list.Count)
            {
                return list[index];
            }

            got = $"{list.Count} items";
        }

        throw new ArgumentException($"convert: expected '{key}' of part '{part}', got {got}");
    }
}
