using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Data;

/// <summary>The order of the samples.</summary>
public static class Order
{
    /// <summary>Shuffle the indices of an epoch: the same bits in both languages, another order each epoch.</summary>
    /// <remarks>Spec: R10.5.</remarks>
    /// <param name="count">The number of samples.</param>
    /// <param name="seed">Of the run.</param>
    /// <param name="epoch">From 0.</param>
    /// <returns>A fresh int64 permutation <c>(count,)</c>.</returns>
    public static Tensor order(long count, long seed, long epoch)
    {
        using var generator = new Generator((ulong)(seed + epoch));
        return randperm(count, generator: generator);
    }
}
