namespace BridgeSharp.Parallel;

/// <summary>Values in error texts, written as Python writes them.</summary>
internal static class Text
{
    /// <summary>Write a shape: <c>()</c>, <c>(3,)</c>, <c>(3, 4)</c>.</summary>
    public static string Shape(IReadOnlyList<long> shape)
        => shape.Count == 1 ? $"({shape[0]},)" : $"({string.Join(", ", shape)})";

    /// <summary>Write a list of names: <c>['a', 'b']</c>.</summary>
    public static string Names(IEnumerable<string> names)
        => $"[{string.Join(", ", names.Select(name => $"'{name}'"))}]";

    /// <summary>Write a number: whole ones of type double with their <c>.0</c>.</summary>
    public static string Number(double value)
    {
        if (double.IsNaN(value))
        {
            return "nan";
        }

        if (double.IsInfinity(value))
        {
            return value > 0 ? "inf" : "-inf";
        }

        return value == Math.Floor(value) && Math.Abs(value) < 1e16
            ? FormattableString.Invariant($"{value:F1}")
            : FormattableString.Invariant($"{value:R}").Replace('E', 'e');
    }
}
