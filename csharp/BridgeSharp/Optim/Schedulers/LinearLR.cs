using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Moves the factor of the learning rates in equal steps from <c>start_factor</c> to <c>end_factor</c>.</summary>
/// <remarks>Spec: R27.1. Source: torch/optim/lr_scheduler.py</remarks>
public sealed class LinearLR : Scheduler
{
    private double startFactor;
    private double endFactor;
    private int totalIters;

    /// <summary>Start the schedule.</summary>
    /// <param name="optimizer">Whose learning rates it moves.</param>
    /// <param name="start_factor">The factor of the first epoch, above 0 (in 1.13 from 0) and at most 1.</param>
    /// <param name="end_factor">The factor at the end, from 0 to 1.</param>
    /// <param name="total_iters">The number of epochs until then.</param>
    /// <param name="last_epoch">The number of the last epoch, to go on from there; -1 starts.</param>
    /// <param name="reference">Whose rules: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">A factor out of range.</exception>
    public LinearLR(
        optim.Optimizer optimizer,
        double start_factor = 1.0 / 3,
        double end_factor = 1,
        int total_iters = 5,
        int last_epoch = -1,
        string reference = "2.10")
        : base(optimizer, reference)
    {
        if (start_factor is > 1 or < 0 || (start_factor == 0 && !old))
        {
            throw new ArgumentException(old
                ? "Starting multiplicative factor expected to be between 0 and 1."
                : "Starting multiplicative factor expected to be greater than 0 and less or equal to 1.");
        }

        if (end_factor is > 1 or < 0)
        {
            throw new ArgumentException("Ending multiplicative factor expected to be between 0 and 1.");
        }

        startFactor = start_factor;
        endFactor = end_factor;
        totalIters = total_iters;
        Start(last_epoch);
    }

    /// <inheritdoc/>
    internal override bool MayFail => base.MayFail || startFactor == 0;

    /// <inheritdoc/>
    internal override void Exchange(StateFields state)
    {
        state.Field("start_factor", ref startFactor);
        state.Field("end_factor", ref endFactor);
        state.Field("total_iters", ref totalIters);
        base.Exchange(state);
    }

    /// <inheritdoc/>
    protected override IEnumerable<double> get_lr()
    {
        if (last_epoch == 0)
        {
            return Rates(startFactor);
        }

        if ((initial && !old) || last_epoch > totalIters)
        {
            return Rates();
        }

        var change = endFactor - startFactor;
        return Rates(1 + PythonMath.Divide(change, (totalIters * startFactor) + ((last_epoch - 1) * change)));
    }

    /// <inheritdoc/>
    protected override IEnumerable<double> get_closed_form_lr() => base_lrs.Select(
        rate => rate * (startFactor + PythonMath.Divide((endFactor - startFactor) * Math.Min(totalIters, last_epoch), totalIters)));
}
