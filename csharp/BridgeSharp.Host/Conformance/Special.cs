using static TorchSharp.torch;

namespace BridgeSharp.Host.Conformance;

/// <summary>Values that a case describes, because JSON has no sign for them: dtypes, functions, modules.</summary>
internal static class Special
{
    /// <summary>Make the value that a description stands for.</summary>
    /// <param name="description">One of <c>dtype</c>, <c>power</c> (of the epoch) and <c>layer</c>, the last with <c>arguments</c>.</param>
    /// <param name="type">What the parameter takes.</param>
    /// <returns>The value, or null where the parameter takes none such.</returns>
    public static object? Convert(Dictionary<string, object?> description, Type type)
    {
        var value = description switch
        {
            { } when description.TryGetValue("dtype", out var name) => Segment.Dtype((string)name!),
            { } when description.TryGetValue("power", out var root) => new Func<int, double>(epoch => Math.Pow((double)root!, epoch)),
            { } when description.TryGetValue("layer", out var name) => Layer((string)name!, description),
            _ => throw new ArgumentException($"conformance: expected dtype, power or layer, got {Values.Describe(description)}"),
        };
        return type.IsInstanceOfType(value) ? value : null;
    }

    private static object Layer(string name, Dictionary<string, object?> description)
    {
        var arguments = ((List<object?>)description["arguments"]!).Cast<Dictionary<string, object?>>()
            .Select(argument => new Argument([.. ((List<object?>)argument["names"]!).Cast<string>()], argument["value"]));
        return Binder.Call(Lookup.Methods(name), [], [.. arguments])!;
    }
}
