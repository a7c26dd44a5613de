using System.Text.Json;
using Tomlyn;
using Tomlyn.Model;

namespace BridgeSharp.Cli;

/// <summary>Files of names and new names.</summary>
internal static class Mapping
{
    /// <summary>Read names and new names from a file of TOML, or of JSON where it is called so.</summary>
    /// <remarks>
    /// A name with points that is not in quotes is a table of TOML, and counts as that name. Spec: R29.3.
    /// </remarks>
    /// <param name="path">The file.</param>
    /// <exception cref="ArgumentException">Other content.</exception>
    /// <exception cref="FileNotFoundException">No such file.</exception>
    public static IReadOnlyList<KeyValuePair<string, string>> Read(string path)
    {
        var (text, file) = (File.ReadAllText(path), Path.GetFileName(path));
        var json = string.Equals(Path.GetExtension(path), ".json", StringComparison.OrdinalIgnoreCase);
        return [.. Flat(json ? Json(text, file) : Toml(text), "", file)];
    }

    /// <summary>Join the keys of tables.</summary>
    private static IEnumerable<KeyValuePair<string, string>> Flat(IEnumerable<KeyValuePair<string, object?>> pairs, string start, string file)
    {
        foreach (var (key, value) in pairs)
        {
            switch (value)
            {
                case string text:
                    yield return KeyValuePair.Create(start + key, text);
                    break;
                case IEnumerable<KeyValuePair<string, object?>> inner:
                    foreach (var pair in Flat(inner, $"{start}{key}.", file))
                    {
                        yield return pair;
                    }

                    break;
                default:
                    throw new ArgumentException($"convert: expected a new name for '{start}{key}' in {file}, got {value ?? "None"}");
            }
        }
    }

    private static List<KeyValuePair<string, object?>> Json(string text, string file)
    {
        try
        {
            using var document = JsonDocument.Parse(text);
            return document.RootElement.ValueKind == JsonValueKind.Object
                ? Members(document.RootElement)
                : throw new ArgumentException($"convert: expected names and new names in {file}, got other content");
        }
        catch (JsonException)
        {
            throw new ArgumentException($"convert: expected names and new names in {file}, got other content");
        }
    }

    private static List<KeyValuePair<string, object?>> Members(JsonElement value)
        => [.. value.EnumerateObject().Select(member => KeyValuePair.Create(member.Name, Value(member.Value)))];

    private static object? Value(JsonElement value) => value.ValueKind switch
    {
        JsonValueKind.Object => Members(value),
        JsonValueKind.String => value.GetString(),
        _ => new Raw(value.GetRawText()),
    };

    private static List<KeyValuePair<string, object?>> Toml(string text)
    {
        try
        {
            return [.. TomlSerializer.Deserialize<TomlTable>(text)!.Select(pair => KeyValuePair.Create(pair.Key, (object?)pair.Value))];
        }
        catch (TomlException error)
        {
            throw new ArgumentException($"convert: expected TOML, got {error.Message}");
        }
    }

    /// <summary>A value that is no name.</summary>
    private sealed record Raw(string Text)
    {
        public override string ToString() => Text;
    }
}
