using System.Collections.Concurrent;

namespace BridgeSharp.Trace;

/// <summary>The fixed random signs behind the projections, the same in both languages.</summary>
internal static class Signs
{
    /// <summary>How many projections there are.</summary>
    public const int Buckets = 31;

    /// <summary>
    /// How many values a row has. Both factors are odd primes, so that the columns of a matrix, whose strides are mostly
    /// powers of two, fall into all buckets.
    /// </summary>
    public const int Width = 127 * Buckets;

    /// <summary>How many rows a chunk has.</summary>
    public const int Rows = 32;

    private const int ChunkWords = 2048;
    private const int Turns = 2112;
    private const int Kept = 256;
    private static readonly Lazy<double[]> OfRows = new(() => Make(0, Rows * Width));
    private static readonly Lazy<int[]> OfPlaces = new(MakePlaces);
    private static readonly ConcurrentDictionary<int, double[]> OfColumns = new();

    /// <summary>Return a word of the stream of SplitMix64 with seed 0.</summary>
    /// <remarks>Spec: R30.2. Source: Steele, Lea and Flood, Fast splittable pseudorandom number generators.</remarks>
    /// <param name="index">The number of the word, from 0.</param>
    public static ulong Word(int index)
    {
        var z = unchecked((ulong)(index + 1) * 0x9E3779B97F4A7C15);
        z = unchecked((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9);
        z = unchecked((z ^ (z >> 27)) * 0x94D049BB133111EB);
        return z ^ (z >> 31);
    }

    /// <summary>Return the signs <c>(Rows, Width)</c> by which rows are folded; the first row's are not used.</summary>
    public static ReadOnlySpan<double> OfRow() => OfRows.Value;

    /// <summary>Return the signs <c>(Width,)</c> of the columns of a chunk.</summary>
    public static ReadOnlySpan<double> OfColumn(int chunk)
    {
        var first = (chunk + 1) * ChunkWords;
        return chunk < Kept ? OfColumns.GetOrAdd(chunk, _ => Make(first, Width)) : Make(first, Width);
    }

    /// <summary>Return the places <c>(127, Buckets)</c> of columns, one row for each 31 of them, by bucket.</summary>
    /// <remarks>
    /// Columns 0 to 30 belong to buckets 0 to 30. Each further 31 are rotated by a random number, so that what comes every
    /// 31 values, or a multiple of it, falls into all buckets too.
    /// </remarks>
    public static ReadOnlySpan<int> Places() => OfPlaces.Value;

    private static int[] MakePlaces()
    {
        var places = new int[Width];
        for (var i = 0; i < Width; i++)
        {
            var (row, bucket) = Math.DivRem(i, Buckets);
            var turn = row == 0 ? 0 : (int)(Word(Turns + row) % Buckets);
            places[i] = (row * Buckets) + ((bucket - turn + Buckets) % Buckets);
        }

        return places;
    }

    /// <summary>Turn the bits of words, lowest first, into signs: 0 is 1, 1 is -1.</summary>
    private static double[] Make(int first, int count)
    {
        var signs = new double[count];
        ulong word = 0;
        for (var i = 0; i < count; i++)
        {
            word = i % 64 == 0 ? Word(first + (i / 64)) : word >> 1;
            signs[i] = 1 - (2.0 * (word & 1));
        }

        return signs;
    }
}
