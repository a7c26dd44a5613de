using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Multiplies the learning rates by <c>gamma</c> every <c>step_size</c> epochs.</summary>
/// <remarks>Spec: R27.1. Source: torch/optim/lr_scheduler.py</remarks>
public sealed class StepLR : Scheduler
{
    private int stepSize;
    private double gamma;

    /// <summary>Start the schedule.</summary>
    /// <param name="optimizer">Whose learning rates it moves.</param>
    /// <param name="step_size">The number of epochs between two changes.</param>
    /// <param name="gamma">The factor.</param>
    /// <param name="last_epoch">The number of the last epoch, to go on from there; -1 starts.</param>
    /// <param name="reference">Whose rules: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    public StepLR(optim.Optimizer optimizer, int step_size, double gamma = 0.1, int last_epoch = -1, string reference = "2.10")
        : base(optimizer, reference)
    {
        stepSize = step_size;
        this.gamma = gamma;
        Start(last_epoch);
    }

    /// <inheritdoc/>
    internal override bool MayFail => base.MayFail || stepSize == 0;

    /// <inheritdoc/>
    internal override void Exchange(StateFields state)
    {
        state.Field("step_size", ref stepSize);
        state.Field("gamma", ref gamma);
        base.Exchange(state);
    }

    /// <inheritdoc/>
    protected override IEnumerable<double> get_lr() => last_epoch == 0 || last_epoch % stepSize != 0 ? Rates() : Rates(gamma);

    /// <inheritdoc/>
    protected override IEnumerable<double> get_closed_form_lr()
        => base_lrs.Select(rate => rate * PythonMath.Power(gamma, PythonMath.FloorDivide(last_epoch, stepSize)));
}
