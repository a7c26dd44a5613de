using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Multiplies the first learning rates by what a function says of the epoch.</summary>
/// <remarks>The functions are not part of the state. Spec: R27.1. Source: torch/optim/lr_scheduler.py</remarks>
public sealed class LambdaLR : FunctionScheduler
{
    /// <summary>Start the schedule, with one function for all groups.</summary>
    /// <param name="optimizer">Whose learning rates it moves.</param>
    /// <param name="lr_lambda">The factor of an epoch.</param>
    /// <param name="last_epoch">The number of the last epoch, to go on from there; -1 starts.</param>
    /// <param name="reference">Whose rules: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    public LambdaLR(optim.Optimizer optimizer, Func<int, double> lr_lambda, int last_epoch = -1, string reference = "2.10")
        : this(optimizer, Enumerable.Repeat(lr_lambda, optimizer.ParamGroups.Count()), last_epoch, reference)
    {
    }

    /// <summary>Start the schedule, with one function per group.</summary>
    /// <param name="optimizer">Whose learning rates it moves.</param>
    /// <param name="lr_lambda">The factor of an epoch, by group.</param>
    /// <param name="last_epoch">The number of the last epoch, to go on from there; -1 starts.</param>
    /// <param name="reference">Whose rules: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">Another number of functions than groups.</exception>
    public LambdaLR(
        optim.Optimizer optimizer, IEnumerable<Func<int, double>> lr_lambda, int last_epoch = -1, string reference = "2.10")
        : base(optimizer, lr_lambda, reference)
        => Start(last_epoch);

    /// <inheritdoc/>
    protected override IEnumerable<double> get_lr() => Zip(functions, base_lrs).Select(pair => pair.Second * pair.First(last_epoch));
}
