using BridgeSharp.Parallel;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp;

public static partial class bridge
{
    /// <summary>Clip gradients to a norm over all of them, then each value to a range.</summary>
    /// <remarks>
    /// Sparse gradients are clipped as the dense ones that they stand for, and stay sparse. Spec: R7.4.
    /// Source: torch/nn/utils/clip_grad.py
    /// </remarks>
    /// <param name="parameters">What has the gradients; those without are passed over.</param>
    /// <param name="max_norm">The largest Euclidean norm.</param>
    /// <param name="max_value">The largest absolute value.</param>
    /// <returns>The norm before clipping, where <paramref name="max_norm"/> is given.</returns>
    /// <exception cref="ArgumentException">A limit that is not above 0.</exception>
    public static double? clip_gradients(IEnumerable<Parameter> parameters, double? max_norm = null, double? max_value = null)
    {
        foreach (var (name, limit) in new[] { (nameof(max_norm), max_norm), (nameof(max_value), max_value) })
        {
            if (limit is { } value && !(value > 0))
            {
                throw new ArgumentException($"clip_gradients: expected {name} above 0, got {Text.Number(value)}");
            }
        }

        using var scope = NewDisposeScope();
        using var mode = no_grad();
        var gradients = parameters.Where(parameter => parameter.grad is not null).Select(Clippable).ToList();
        double? norm = max_norm is { } most ? ClipNorm(gradients, most) : null;
        if (max_value is { } bound)
        {
            gradients.ForEach(gradient => gradient.clamp_(-bound, bound));
        }

        return norm;
    }

    /// <summary>Return what can be clipped: the gradient, of a sparse one its values, each index once.</summary>
    private static Tensor Clippable(Parameter parameter)
    {
        var gradient = parameter.grad!;
        if (!gradient.is_sparse)
        {
            return gradient;
        }

        var values = gradient.SparseValues;
        if (values.size(0) == 0)
        {
            return values;
        }

        var (indices, inverse, _) = gradient.SparseIndices.unique(return_inverse: true, dim: 1);
        var sums = zeros([indices.size(1), .. values.shape[1..]], values.dtype, values.device).index_add_(0, inverse!, values, 1);
        parameter.grad = sparse_coo_tensor(indices, sums, gradient.shape);
        return sums;
    }

    /// <summary>Scale all gradients where their norm is above the limit, in PyTorch's order of operations.</summary>
    private static double ClipNorm(List<Tensor> gradients, double max_norm)
    {
        if (gradients.Count == 0)
        {
            return 0;
        }

        var device = gradients[0].device;
        var norms = stack(gradients.Select(gradient => linalg.vector_norm(gradient).to(device)));
        var total = linalg.vector_norm(norms);
        var coefficient = (max_norm / (total + 1e-6)).clamp(max: 1.0);
        gradients.ForEach(gradient => gradient.mul_(coefficient.to(gradient.device)));
        return total.to(float64).item<double>();
    }
}
