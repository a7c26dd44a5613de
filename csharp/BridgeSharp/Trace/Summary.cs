using System.Buffers;

namespace BridgeSharp.Trace;

/// <summary>The norm, range, counts and projections of a tensor.</summary>
/// <remarks>
/// <c>projections</c> has one number for each bucket: the sum of its values, each with a fixed random sign. It is null
/// where a value, or the norm, is not finite. Spec: R30.2.
/// </remarks>
/// <param name="norm">The Euclidean norm.</param>
/// <param name="minimum">The smallest value.</param>
/// <param name="maximum">The largest value.</param>
/// <param name="nan">How many values are NaN.</param>
/// <param name="infinite">How many values are infinite.</param>
/// <param name="projections">The projections, or null.</param>
internal sealed record Summary(double norm, double minimum, double maximum, long nan, long infinite, double[]? projections)
{
    private const int Chunk = Signs.Rows * Signs.Width;

    /// <summary>Summarize real numbers: the same values give the same bits in both languages and all builds.</summary>
    /// <remarks>
    /// Every operation is an addition, a multiplication or a square root of single float64 numbers, in an order that
    /// depends on the count of values only. Spec: R30.2.
    /// </remarks>
    /// <param name="values">The values of a tensor.</param>
    public static Summary summarize(Numbers values)
    {
        var rows = (int)Math.Min(Signs.Rows, PowerOfTwo((values.Count + Signs.Width - 1) / Signs.Width));
        var (numbers, powers) = (ArrayPool<double>.Shared.Rent(rows * Signs.Width), ArrayPool<double>.Shared.Rent(rows * Signs.Width));
        try
        {
            return Summarize(values, numbers.AsSpan(0, rows * Signs.Width), powers.AsSpan(0, rows * Signs.Width));
        }
        finally
        {
            ArrayPool<double>.Shared.Return(numbers);
            ArrayPool<double>.Shared.Return(powers);
        }
    }

    /// <summary>Add up the columns of all chunks, the values with their signs and their squares, and then the columns.</summary>
    private static Summary Summarize(Numbers values, Span<double> rows, Span<double> powers)
    {
        var (sums, squares) = (new double[Signs.Width], new double[Signs.Width]);
        var (minimum, maximum) = (double.PositiveInfinity, double.NegativeInfinity);
        for (int chunk = 0, start = 0; start < values.Count; chunk++, start += Chunk)
        {
            var part = rows[..Math.Min(Chunk, values.Count - start)];
            values.Read(start, part);
            rows[part.Length..].Clear();
            var range = Lanes.Range(part);
            if (!range.Finite)
            {
                return NotFinite(values);
            }

            (minimum, maximum) = (Math.Min(minimum, range.Minimum), Math.Max(maximum, range.Maximum));
            Lanes.Multiply(rows, rows, powers);
            Lanes.Add(squares, Fold(powers, Signs.Width));
            Lanes.Add(sums, Fold(rows, Signs.Width, Signs.OfRow()), Signs.OfColumn(chunk));
        }

        var norm = Math.Sqrt(Fold(Padded(Bucketed(squares), 32), 1)[0]);
        return values.Count == 0
            ? new Summary(0, 0, 0, 0, 0, new double[Signs.Buckets])
            : new Summary(norm, minimum + 0.0, maximum + 0.0, 0, 0, double.IsFinite(norm) ? Bucketed(sums) : null);
    }

    /// <summary>Count what is not finite; there is nothing else to say.</summary>
    private static Summary NotFinite(Numbers values)
    {
        var all = new double[values.Count];
        values.Read(0, all);
        var (nan, infinite) = (all.LongCount(double.IsNaN), all.LongCount(double.IsInfinity));
        var (minimum, maximum) = nan > 0 ? (double.NaN, double.NaN) : (all.Min(), all.Max());
        return new Summary(nan > 0 ? double.NaN : double.PositiveInfinity, minimum, maximum, nan, infinite, null);
    }

    /// <summary>Add up the columns of each bucket.</summary>
    private static double[] Bucketed(double[] columns)
    {
        var rows = new double[128 * Signs.Buckets];
        foreach (var (index, place) in Signs.Places().ToArray().Index())
        {
            rows[index] = columns[place];
        }

        return Fold(rows, Signs.Buckets).ToArray();
    }

    /// <summary>Copy numbers and add zeros.</summary>
    private static double[] Padded(double[] numbers, int count) => [.. numbers, .. new double[count - numbers.Length]];

    /// <summary>Add the upper half of a power of two of rows to the lower half, until one row is left.</summary>
    /// <remarks>Row k takes its sign when it is added, and carries on those of the rows added to it before.</remarks>
    private static Span<double> Fold(Span<double> rows, int width, ReadOnlySpan<double> signs = default)
    {
        for (var half = rows.Length / 2; half >= width; half /= 2)
        {
            if (signs.IsEmpty)
            {
                Lanes.Add(rows[..half], rows[half..(2 * half)]);
            }
            else
            {
                Lanes.Add(rows[..half], rows[half..(2 * half)], signs[half..(2 * half)]);
            }
        }

        return rows[..width];
    }

    /// <summary>Return the smallest power of two that is not below a number.</summary>
    private static uint PowerOfTwo(int number) => System.Numerics.BitOperations.RoundUpToPowerOf2((uint)Math.Max(number, 1));
}
