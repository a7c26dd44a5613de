using System.Numerics;
using System.Runtime.InteropServices;

namespace BridgeSharp.Trace;

/// <summary>Operations on many numbers at once; each result is that of one operation on single numbers.</summary>
internal static class Lanes
{
    /// <summary>Multiply number by number.</summary>
    public static void Multiply(ReadOnlySpan<double> a, ReadOnlySpan<double> b, Span<double> result)
    {
        var x = Vectors(a);
        var y = Vectors(b);
        var z = Vectors(result);
        for (var i = 0; i < z.Length; i++)
        {
            z[i] = x[i] * y[i];
        }

        for (var i = z.Length * Vector<double>.Count; i < result.Length; i++)
        {
            result[i] = a[i] * b[i];
        }
    }

    /// <summary>Add number by number to what is there.</summary>
    public static void Add(Span<double> target, ReadOnlySpan<double> values)
    {
        var x = Vectors(target);
        var y = Vectors(values);
        for (var i = 0; i < x.Length; i++)
        {
            x[i] += y[i];
        }

        for (var i = x.Length * Vector<double>.Count; i < target.Length; i++)
        {
            target[i] += values[i];
        }
    }

    /// <summary>Add number by number, each with its sign, to what is there.</summary>
    public static void Add(Span<double> target, ReadOnlySpan<double> values, ReadOnlySpan<double> signs)
    {
        var x = Vectors(target);
        var y = Vectors(values);
        var z = Vectors(signs);
        for (var i = 0; i < x.Length; i++)
        {
            x[i] += y[i] * z[i];
        }

        for (var i = x.Length * Vector<double>.Count; i < target.Length; i++)
        {
            target[i] += values[i] * signs[i];
        }
    }

    /// <summary>Find the smallest and the largest number, and tell whether all are finite.</summary>
    public static (double Minimum, double Maximum, bool Finite) Range(ReadOnlySpan<double> values)
    {
        var (minimum, maximum, rest) = (double.PositiveInfinity, double.NegativeInfinity, 0.0);
        var lanes = Vectors(values);
        var (low, high, zero) = (new Vector<double>(minimum), new Vector<double>(maximum), Vector<double>.Zero);
        foreach (var lane in lanes)
        {
            low = Vector.Min(low, lane);
            high = Vector.Max(high, lane);
            zero += lane - lane; // 0, unless a number is not finite
        }

        for (var i = 0; i < Vector<double>.Count; i++)
        {
            (minimum, maximum, rest) = (Math.Min(minimum, low[i]), Math.Max(maximum, high[i]), rest + zero[i]);
        }

        foreach (var value in values[(lanes.Length * Vector<double>.Count)..])
        {
            (minimum, maximum, rest) = (Math.Min(minimum, value), Math.Max(maximum, value), rest + (value - value));
        }

        return (minimum, maximum, rest == 0);
    }

    private static ReadOnlySpan<Vector<double>> Vectors(ReadOnlySpan<double> values) => MemoryMarshal.Cast<double, Vector<double>>(values);

    private static Span<Vector<double>> Vectors(Span<double> values) => MemoryMarshal.Cast<double, Vector<double>>(values);
}
