using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Sparse gradients, for which TorchSharp has no <c>coalesce</c> and no <c>sparse_mask</c>.</summary>
internal static class Sparse
{
    /// <summary>Add up the values of equal indices, in their order, and sort by index.</summary>
    /// <returns>Indices <c>(dims, n)</c> and values <c>(n, *)</c>.</returns>
    public static (Tensor Indices, Tensor Values) Coalesce(Tensor gradient)
    {
        var (indices, values) = (gradient.SparseIndices, gradient.SparseValues);
        var shape = gradient.shape.Take((int)indices.shape[0]).ToArray();
        var flat = zeros(indices.shape[1], dtype: int64);
        for (var dim = 0; dim < shape.Length; dim++)
        {
            flat = (flat * shape[dim]).add_(indices[dim]);
        }

        var (own, inverse, _) = flat.unique(sorted: true, return_inverse: true);
        var sums = zeros([own.shape[0], .. values.shape.Skip(1)], dtype: values.dtype).index_add_(0, inverse!, values, 1);
        var rows = new Tensor[shape.Length];
        for (var dim = shape.Length - 1; dim >= 0; dim--)
        {
            rows[dim] = own.remainder(shape[dim]);
            own = own.floor_divide(shape[dim]);
        }

        return (stack(rows), sums);
    }

    /// <summary>Take the values of a dense tensor at indices.</summary>
    public static Tensor At(Tensor dense, Tensor indices)
        => dense.index([.. Enumerable.Range(0, (int)indices.shape[0]).Select(dim => TensorIndex.Tensor(indices[dim]))]);
}
