using System.Text.Json;
using System.Text.Json.Nodes;

namespace BridgeSharp.Host;

/// <summary>Plain values of JSON as C# values.</summary>
internal static class Scalars
{
    /// <summary>Read null, a boolean, a whole number, a number, a string, or a list or dictionary of them.</summary>
    public static object? Read(JsonNode? node) => node?.GetValueKind() switch
    {
        null or JsonValueKind.Null => null,
        JsonValueKind.True => true,
        JsonValueKind.False => false,
        JsonValueKind.String => (string)node!,
        JsonValueKind.Number => node!.AsValue().TryGetValue<long>(out var whole) ? (object)whole : (double)node,
        JsonValueKind.Array => node!.AsArray().Select(Read).ToList(),
        JsonValueKind.Object => node!.AsObject().ToDictionary(entry => entry.Key, entry => Read(entry.Value)),
        _ => throw new ArgumentException($"facade: expected a plain value, got {node!.ToJsonString()}"),
    };
}
