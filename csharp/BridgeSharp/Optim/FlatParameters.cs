using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Parameters as one vector, in their order.</summary>
internal sealed class FlatParameters(IReadOnlyList<Parameter> parameters)
{
    /// <summary>Join the gradients; None counts as zeros.</summary>
    public Tensor Gradient() => cat([.. parameters.Select(parameter => parameter.grad switch
    {
        null => zeros(parameter.numel(), dtype: parameter.dtype, device: parameter.device),
        { is_sparse: true } sparse => sparse.to_dense().reshape(-1),
        var dense => dense.reshape(-1),
    })]);

    /// <summary>Move along a direction.</summary>
    public void Shift(Tensor direction, double by)
    {
        var offset = 0L;
        foreach (var parameter in parameters)
        {
            var count = parameter.numel();
            parameter.add_(direction.narrow(0, offset, count).view_as(parameter), alpha: by);
            offset += count;
        }
    }

    /// <summary>Copy the values.</summary>
    public List<Tensor> Copy() => [.. parameters.Select(parameter => parameter.clone())];

    /// <summary>Take values back.</summary>
    public void Restore(List<Tensor> values)
    {
        foreach (var (parameter, value) in parameters.Zip(values))
        {
            parameter.copy_(value);
        }
    }
}
