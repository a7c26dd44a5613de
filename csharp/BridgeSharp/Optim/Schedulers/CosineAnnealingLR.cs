using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Moves the learning rates along half a cosine to <c>eta_min</c>, and back.</summary>
/// <remarks>Spec: R27.1. Source: torch/optim/lr_scheduler.py</remarks>
public sealed class CosineAnnealingLR : Scheduler
{
    private double tMax;
    private double etaMin;

    /// <summary>Start the schedule.</summary>
    /// <param name="optimizer">Whose learning rates it moves.</param>
    /// <param name="T_max">The number of epochs of half a wave.</param>
    /// <param name="eta_min">The lowest rate.</param>
    /// <param name="last_epoch">The number of the last epoch, to go on from there; -1 starts.</param>
    /// <param name="reference">Whose rules: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    public CosineAnnealingLR(
        optim.Optimizer optimizer, double T_max, double eta_min = 0, int last_epoch = -1, string reference = "2.10")
        : base(optimizer, reference)
    {
        tMax = T_max;
        etaMin = eta_min;
        Start(last_epoch);
    }

    /// <inheritdoc/>
    internal override bool MayFail => base.MayFail || tMax == 0 || tMax != Math.Floor(tMax);

    /// <inheritdoc/>
    internal override void Exchange(StateFields state)
    {
        state.Count("T_max", ref tMax);
        state.Field("eta_min", ref etaMin);
        base.Exchange(state);
    }

    /// <inheritdoc/>
    protected override IEnumerable<double> get_lr()
    {
        if (old ? last_epoch == 0 : initial)
        {
            return Rates();
        }

        if (steps == 1 && last_epoch > 0)
        {
            return Zip(base_lrs, groups).Select(pair => OnWave(pair.First, last_epoch * Math.PI));
        }

        if ((last_epoch - 1 - tMax) % (2 * tMax) == 0)
        {
            var rise = 1 - Math.Cos(PythonMath.Divide(Math.PI, tMax));
            return Zip(base_lrs, groups).Select(pair => pair.Second.LearningRate + ((pair.First - etaMin) * rise / 2));
        }

        var change = PythonMath.Divide(1 + Cosine(Math.PI * last_epoch), 1 + Cosine(Math.PI * (last_epoch - 1)));
        return Rates().Select(rate => (change * (rate - etaMin)) + etaMin);
    }

    /// <inheritdoc/>
    protected override IEnumerable<double> get_closed_form_lr() => base_lrs.Select(rate => OnWave(rate, Math.PI * last_epoch));

    private double OnWave(double rate, double angle) => etaMin + ((rate - etaMin) * (1 + Cosine(angle)) / 2);

    private double Cosine(double angle) => Math.Cos(PythonMath.Divide(angle, tMax));
}
