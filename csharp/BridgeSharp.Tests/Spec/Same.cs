using System.Collections;
using System.Runtime.CompilerServices;
using TorchSharp;
using Xunit;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Asserts that results are the same.</summary>
internal static class Same
{
    /// <summary>Compare two trees: types, dtypes, shapes and bits.</summary>
    public static void Trees(object? expected, object? actual)
    {
        switch (expected)
        {
            case Tensor tensor:
                var other = Assert.IsType<Tensor>(actual, exactMatch: false);
                Assert.Equal((tensor.dtype, string.Join(',', tensor.shape)), (other.dtype, string.Join(',', other.shape)));
                Assert.Equal(Bits(tensor), Bits(other));
                break;
            case IDictionary dictionary:
                var same = Assert.IsAssignableFrom<IDictionary>(actual);
                Trees(Listed(dictionary.Keys), Listed(same.Keys));
                Trees(Listed(dictionary.Values), Listed(same.Values));
                break;
            case IList list:
                Items(list, Assert.IsAssignableFrom<IList>(actual));
                break;
            case Pair pair:
                var twin = Assert.IsType<Pair>(actual);
                Trees((pair.x, pair.y), (twin.x, twin.y));
                break;
            case ITuple tuple:
                Items(Listed(tuple), Listed(Assert.IsAssignableFrom<ITuple>(actual)));
                break;
            default:
                Assert.Equal(expected, actual);
                break;
        }
    }

    /// <summary>Compare two tensors within a share of the largest value; 0 asks for the same bits.</summary>
    public static void Within(Tensor expected, Tensor actual, double relative)
    {
        if (relative == 0)
        {
            Trees(expected, actual);
            return;
        }

        using var scope = NewDisposeScope();
        Assert.Equal(expected.dtype, actual.dtype);
        var limit = relative * expected.abs().max().to(float64).item<double>();
        Assert.InRange((actual - expected).abs().max().to(float64).item<double>(), 0, limit);
    }

    /// <summary>Count the live tensors, after the finalizers of those that earlier tests left have run.</summary>
    public static long Live()
    {
        GC.Collect();
        GC.WaitForPendingFinalizers();
        return Tensor.TotalCount;
    }

    /// <summary>Take the bytes of a tensor, in row-major order.</summary>
    public static byte[] Bits(Tensor tensor)
    {
        using var scope = NewDisposeScope();
        using var mode = no_grad();
        return tensor.detach().contiguous().bytes.ToArray();
    }

    private static void Items(IList expected, IList actual)
    {
        Assert.Equal(expected.Count, actual.Count);
        for (var i = 0; i < expected.Count; i++)
        {
            Trees(expected[i], actual[i]);
        }
    }

    private static List<object?> Listed(IEnumerable items) => [.. items.Cast<object?>()];

    private static List<object?> Listed(ITuple tuple) => [.. Enumerable.Range(0, tuple.Length).Select(i => tuple[i])];
}
