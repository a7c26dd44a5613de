using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Multiplies the learning rates by <c>gamma</c> every epoch.</summary>
/// <remarks>Spec: R27.1. Source: torch/optim/lr_scheduler.py</remarks>
public sealed class ExponentialLR : Scheduler
{
    private double gamma;

    /// <summary>Start the schedule.</summary>
    /// <param name="optimizer">Whose learning rates it moves.</param>
    /// <param name="gamma">The factor.</param>
    /// <param name="last_epoch">The number of the last epoch, to go on from there; -1 starts.</param>
    /// <param name="reference">Whose rules: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    public ExponentialLR(optim.Optimizer optimizer, double gamma, int last_epoch = -1, string reference = "2.10")
        : base(optimizer, reference)
    {
        this.gamma = gamma;
        Start(last_epoch);
    }

    /// <inheritdoc/>
    internal override void Exchange(StateFields state)
    {
        state.Field("gamma", ref gamma);
        base.Exchange(state);
    }

    /// <inheritdoc/>
    protected override IEnumerable<double> get_lr() => (old ? last_epoch == 0 : initial) ? Rates() : Rates(gamma);

    /// <inheritdoc/>
    protected override IEnumerable<double> get_closed_form_lr() => base_lrs.Select(rate => rate * PythonMath.Power(gamma, last_epoch));
}
