using System.Text.Json.Nodes;

namespace BridgeSharp.Tests.Spec;

/// <summary>A folder for a trace, which is deleted at the end.</summary>
internal sealed class TraceFolder : IDisposable
{
    /// <summary>The folder.</summary>
    public string Path { get; } = Directory.CreateTempSubdirectory("trace").FullName;

    /// <summary>The file of the records.</summary>
    public string File => System.IO.Path.Combine(Path, "trace.jsonl");

    /// <summary>Read the records.</summary>
    public IReadOnlyList<JsonObject> Read()
    {
        using var reader = new StreamReader(new FileStream(File, FileMode.Open, FileAccess.Read, FileShare.ReadWrite));
        var lines = reader.ReadToEnd().Split('\n', StringSplitOptions.RemoveEmptyEntries);
        return [.. lines.Skip(1).Select(line => JsonNode.Parse(line)!.AsObject()).Where(line => !line.ContainsKey("end"))];
    }

    /// <summary>Delete the folder.</summary>
    public void Dispose() => Directory.Delete(Path, recursive: true);
}
