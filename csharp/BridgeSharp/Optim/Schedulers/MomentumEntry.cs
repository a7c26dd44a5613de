using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>The momentum of a parameter group, or its first beta.</summary>
internal static class MomentumEntry
{
    /// <summary>Tell whether an optimizer has betas; one that has no momentum either is refused.</summary>
    public static bool UsesBeta1(optim.Optimizer optimizer, bool betas, string named) => optimizer switch
    {
        optim.IBetas when betas => true,
        optim.IMomentum => false,
        _ => throw new ArgumentException($"optimizer must support {named} with `cycle_momentum` option enabled"),
    };

    /// <summary>Set it.</summary>
    public static void Set(optim.ILearningRateController group, bool beta1, double value)
    {
        if (beta1)
        {
            var held = (optim.IBetas)group;
            held.Betas = (value, held.Betas.Item2);
        }
        else
        {
            ((optim.IMomentum)group).Momentum = value;
        }
    }
}
