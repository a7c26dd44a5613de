using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Takes the learning rates to 0 in <c>total_iters</c> epochs, along a power of what is left.</summary>
/// <remarks>Spec: R27.1. Source: torch/optim/lr_scheduler.py</remarks>
public sealed class PolynomialLR : Scheduler
{
    private int totalIters;
    private double power;

    /// <summary>Start the schedule.</summary>
    /// <param name="optimizer">Whose learning rates it moves.</param>
    /// <param name="total_iters">The number of epochs until 0.</param>
    /// <param name="power">The exponent.</param>
    /// <param name="last_epoch">The number of the last epoch, to go on from there; -1 starts.</param>
    /// <param name="reference">Whose rules: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    public PolynomialLR(
        optim.Optimizer optimizer, int total_iters = 5, double power = 1, int last_epoch = -1, string reference = "2.10")
        : base(optimizer, reference)
    {
        totalIters = total_iters;
        this.power = power;
        Start(last_epoch);
    }

    /// <inheritdoc/>
    internal override bool MayFail => base.MayFail || power < 0;

    /// <inheritdoc/>
    internal override void Exchange(StateFields state)
    {
        state.Field("total_iters", ref totalIters);
        state.Field("power", ref power);
        base.Exchange(state);
    }

    /// <inheritdoc/>
    protected override IEnumerable<double> get_lr() => (old ? last_epoch == 0 : initial) || last_epoch > totalIters
        ? Rates()
        : Rates(PythonMath.Power(PythonMath.Divide(Left(last_epoch), Left(last_epoch - 1)), power));

    /// <inheritdoc/>
    protected override IEnumerable<double> get_closed_form_lr()
        => base_lrs.Select(rate => rate * PythonMath.Power(Left(Math.Min(totalIters, last_epoch)), power));

    private double Left(int epoch) => 1 - PythonMath.Divide(epoch, totalIters);
}
