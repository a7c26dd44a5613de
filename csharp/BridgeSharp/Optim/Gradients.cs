using TorchSharp.Modules;

namespace BridgeSharp.Optim;

/// <summary>What the optimizers do with gradients.</summary>
internal static class Gradients
{
    /// <summary>Set every gradient to None.</summary>
    public static void Drop(IEnumerable<Parameter> parameters)
    {
        foreach (var parameter in parameters)
        {
            parameter.grad = null;
        }
    }
}
