using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Multiplies the learning rates by <c>factor</c> until <c>total_iters</c> epochs have passed.</summary>
/// <remarks>Spec: R27.1. Source: torch/optim/lr_scheduler.py</remarks>
public sealed class ConstantLR : Scheduler
{
    private double factor;
    private int totalIters;

    /// <summary>Start the schedule.</summary>
    /// <param name="optimizer">Whose learning rates it moves.</param>
    /// <param name="factor">From 0 to 1.</param>
    /// <param name="total_iters">The number of epochs.</param>
    /// <param name="last_epoch">The number of the last epoch, to go on from there; -1 starts.</param>
    /// <param name="reference">Whose rules: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">A factor out of range.</exception>
    public ConstantLR(
        optim.Optimizer optimizer, double factor = 1.0 / 3, int total_iters = 5, int last_epoch = -1, string reference = "2.10")
        : base(optimizer, reference)
    {
        if (factor is > 1 or < 0)
        {
            throw new ArgumentException("Constant multiplicative factor expected to be between 0 and 1.");
        }

        this.factor = factor;
        totalIters = total_iters;
        Start(last_epoch);
    }

    /// <inheritdoc/>
    internal override bool MayFail => base.MayFail || factor == 0;

    /// <inheritdoc/>
    internal override void Exchange(StateFields state)
    {
        state.Field("factor", ref factor);
        state.Field("total_iters", ref totalIters);
        base.Exchange(state);
    }

    /// <inheritdoc/>
    protected override IEnumerable<double> get_lr()
    {
        if (last_epoch == 0)
        {
            return Rates(factor);
        }

        return last_epoch == totalIters ? Rates(PythonMath.Divide(1, factor)) : Rates();
    }

    /// <inheritdoc/>
    protected override IEnumerable<double> get_closed_form_lr()
        => base_lrs.Select(rate => rate * (factor + (last_epoch >= totalIters ? 1 - factor : 0)));
}
