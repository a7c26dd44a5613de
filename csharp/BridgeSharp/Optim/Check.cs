namespace BridgeSharp.Optim;

/// <summary>Checks that the optimizers share.</summary>
internal static class Check
{
    /// <summary>Refuse options below 0, and NaN.</summary>
    public static void NotNegative(string optimizer, params ReadOnlySpan<(string Name, double Value)> options)
    {
        foreach (var (name, value) in options)
        {
            if (!(value >= 0))
            {
                throw new ArgumentException($"{optimizer}: expected {name} of at least 0, got {Parallel.Text.Number(value)}");
            }
        }
    }

    /// <summary>Accept a reference whose formulas are known.</summary>
    public static string Reference(string optimizer, string reference)
        => reference is "2.10" or "1.13"
            ? reference
            : throw new ArgumentException($"{optimizer}: expected reference 2.10 or 1.13, got {reference}");
}
