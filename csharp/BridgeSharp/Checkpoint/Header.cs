using System.Text;
using System.Text.Json;

namespace BridgeSharp.Checkpoint;

/// <summary>The header of a safetensors file, and whether its data can be so.</summary>
/// <param name="Metadata">Its texts.</param>
/// <param name="Entries">Its tensors, in the order of the header.</param>
internal sealed record Header(OrderedDictionary<string, string> Metadata, IReadOnlyList<Entry> Entries)
{
    /// <summary>The longest header in bytes, as in the safetensors library.</summary>
    public const int Limit = 100_000_000;

    private static readonly UTF8Encoding Strict = new(encoderShouldEmitUTF8Identifier: false, throwOnInvalidBytes: true);

    /// <summary>Read a header strictly.</summary>
    /// <remarks>Spec: R26.2. Source: https://huggingface.co/docs/safetensors/index#format</remarks>
    /// <param name="content">Its bytes.</param>
    /// <param name="data">The number of bytes that follow it.</param>
    /// <param name="name">The file's, for errors.</param>
    /// <exception cref="CheckpointException">No such header, or one that the data cannot have.</exception>
    public static Header Parse(ReadOnlySpan<byte> content, long data, string name)
    {
        var members = Entry.Once(Json(content, name), name);
        var metadata = members.Remove("__metadata__", out var texts) ? Texts(texts, name) : [];
        List<Entry> entries = [.. members.Select(member => Entry.Read(member.Key, member.Value, name))];
        CheckPlaces(entries, data, name);
        return new Header(metadata, entries);
    }

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
            Entry.Refuse("a header in UTF-8", name, "other bytes");
        }

        if (!text.StartsWith('{') || JsonText.Parse(text) is not { } parsed)
        {
            Entry.Refuse("an object of JSON as header", name, "other text");
            return default;
        }

        return parsed;
    }

    /// <summary>Read names and texts.</summary>
    private static OrderedDictionary<string, string> Texts(JsonElement value, string name)
    {
        if (value.ValueKind != JsonValueKind.Object || value.EnumerateObject().Any(member => member.Value.ValueKind != JsonValueKind.String))
        {
            Entry.Refuse("names and strings as __metadata__", name, "other JSON");
        }

        return new(Entry.Once(value, name).Select(member => KeyValuePair.Create(member.Key, member.Value.GetString()!)));
    }

    /// <summary>Let the tensors fill the data, each from the end of the one before.</summary>
    private static void CheckPlaces(IReadOnlyList<Entry> entries, long data, string name)
    {
        var (place, before) = (0L, "");
        foreach (var entry in entries.OrderBy(entry => (entry.Begin, entry.End)))
        {
            if (entry.End > data)
            {
                Entry.Refuse($"{entry.End} bytes of data for '{entry.Name}'", name, $"{data}");
            }

            if (entry.Begin < place)
            {
                Entry.Refuse("tensors apart from each other", name, $"'{entry.Name}' from {entry.Begin}, before '{before}' ends at {place}");
            }

            if (entry.Begin > place)
            {
                Entry.Refuse("no hole", name, $"one from {place} to {entry.Begin}");
            }

            (place, before) = (entry.End, entry.Name);
        }

        if (place != data)
        {
            Entry.Refuse($"{place} bytes of data", name, $"{data}");
        }
    }
}
