using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Moves the learning rates up and down between two bounds, and momentum down and up.</summary>
/// <remarks>Spec: R27.1. Source: torch/optim/lr_scheduler.py</remarks>
public sealed class CyclicLR : Scheduler
{
    private readonly Func<double, double>? scale;
    private readonly bool beta1;
    private List<double> maxRates;
    private List<double> baseMomentums = [];
    private List<double> maxMomentums = [];
    private double totalSize;
    private double stepRatio;
    private string mode;
    private double gamma;
    private string scaleMode;
    private bool cycleMomentum;

    /// <summary>Start the schedule.</summary>
    /// <param name="optimizer">Whose learning rates it moves.</param>
    /// <param name="base_lr">The lower bound, or one per group.</param>
    /// <param name="max_lr">The upper bound, or one per group.</param>
    /// <param name="step_size_up">The number of updates of the way up.</param>
    /// <param name="step_size_down">The number of updates of the way down; by default as many.</param>
    /// <param name="mode"><c>"triangular"</c> keeps the height, <c>"triangular2"</c> halves it every cycle, <c>"exp_range"</c> multiplies it by <paramref name="gamma"/> every update.</param>
    /// <param name="gamma">Of <c>"exp_range"</c>.</param>
    /// <param name="scale_fn">The factor of the height, instead of a mode.</param>
    /// <param name="scale_mode">What <paramref name="scale_fn"/> is given: the number of the cycle, from 1 (<c>"cycle"</c>), or of the update, from 0 (<c>"iterations"</c>).</param>
    /// <param name="cycle_momentum">Whether momentum, or the first beta, is moved too.</param>
    /// <param name="base_momentum">Its lower bound, or one per group; 0.8 by default.</param>
    /// <param name="max_momentum">Its upper bound, or one per group; 0.9 by default.</param>
    /// <param name="last_epoch">The number of the last epoch, to go on from there; -1 starts.</param>
    /// <param name="reference">Whose rules: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">An option out of range, or an optimizer without momentum.</exception>
    public CyclicLR(
        optim.Optimizer optimizer,
        PerGroup base_lr,
        PerGroup max_lr,
        int step_size_up = 2000,
        int? step_size_down = null,
        string mode = "triangular",
        double gamma = 1,
        Func<double, double>? scale_fn = null,
        string scale_mode = "cycle",
        bool cycle_momentum = true,
        PerGroup? base_momentum = null,
        PerGroup? max_momentum = null,
        int last_epoch = -1,
        string reference = "2.10")
        : base(optimizer, reference)
    {
        var rates = base_lr.For(optimizer, nameof(base_lr), old);
        foreach (var (group, rate) in last_epoch == -1 ? groups.Zip(rates) : [])
        {
            group.LearningRate = rate;
        }

        maxRates = max_lr.For(optimizer, nameof(max_lr), old);
        totalSize = (double)step_size_up + (step_size_down ?? step_size_up);
        stepRatio = PythonMath.Divide(step_size_up, totalSize);
        if (mode is not ("triangular" or "triangular2" or "exp_range") && scale_fn is null)
        {
            throw new ArgumentException("mode is invalid and scale_fn is None");
        }

        (this.mode, this.gamma, scale, cycleMomentum) = (mode, gamma, scale_fn, cycle_momentum);
        scaleMode = scale_fn is not null ? scale_mode : mode == "exp_range" ? "iterations" : "cycle";
        if (cycle_momentum)
        {
            beta1 = MomentumEntry.UsesBeta1(optimizer, betas: !old, old ? "momentum" : "momentum or beta1");
            baseMomentums = (base_momentum ?? 0.8).For(optimizer, nameof(base_momentum), old);
            maxMomentums = (max_momentum ?? 0.9).For(optimizer, nameof(max_momentum), old);
            Prepare(last_epoch);
        }

        Start(last_epoch);
        Rebase(rates);
    }

    /// <inheritdoc/>
    internal override bool MayFail => base.MayFail || scale is not null || stepRatio is 0 or 1;

    /// <inheritdoc/>
    internal override void Exchange(StateFields state)
    {
        state.Field("max_lrs", ref maxRates);
        state.Field("total_size", ref totalSize);
        state.Field("step_ratio", ref stepRatio);
        state.Field("mode", ref mode);
        state.Field("gamma", ref gamma);
        state.Field("scale_mode", ref scaleMode);
        state.Field("cycle_momentum", ref cycleMomentum);
        if (cycleMomentum)
        {
            state.Constant("use_beta1", beta1, when: !old);
            state.Field("base_momentums", ref baseMomentums);
            state.Field("max_momentums", ref maxMomentums);
        }

        base.Exchange(state);

        // PyTorch 1.13 has a function of the user's itself in the state, where a tree cannot hold it.
        if (!old || scale is null)
        {
            state.Function("_scale_fn_custom");
        }
        else
        {
            state.Constant("_scale_fn_ref", null);
        }
    }

    /// <inheritdoc/>
    protected override IEnumerable<double> get_lr()
    {
        var passed = last_epoch / totalSize;
        var cycle = Math.Floor(1 + passed);
        var x = 1 + passed - cycle;
        var height = x <= stepRatio ? PythonMath.Divide(x, stepRatio) : PythonMath.Divide(x - 1, stepRatio - 1);
        var at = scaleMode == "cycle" ? cycle : last_epoch;
        double[] rates = [.. Zip(base_lrs, maxRates).Select(pair => pair.First + ((pair.Second - pair.First) * height * Scale(at)))];
        if (cycleMomentum)
        {
            double[] momentums = [.. Zip(baseMomentums, maxMomentums).Select(pair => pair.Second - ((pair.Second - pair.First) * height * Scale(at)))];
            foreach (var (group, momentum) in Zip(groups, momentums))
            {
                MomentumEntry.Set(group, beta1, momentum);
            }
        }

        return rates;
    }

    private double Scale(double at) => scale is not null ? scale(at) : mode switch
    {
        "triangular2" => 1 / Math.Pow(2, at - 1),
        "exp_range" => PythonMath.Power(gamma, at),
        _ => 1,
    };

    /// <summary>Give the groups their first momentum; PyTorch 1.13 has no entries for its bounds, and reads the lower one back.</summary>
    private void Prepare(int last_epoch)
    {
        foreach (var ((group, low), high) in last_epoch == -1 ? groups.Zip(baseMomentums).Zip(maxMomentums) : [])
        {
            MomentumEntry.Set(group, beta1, old ? low : high);
            if (!old)
            {
                GroupEntries.Set(group, "max_momentum", high);
                GroupEntries.Set(group, "base_momentum", low);
            }
        }

        if (old)
        {
            baseMomentums = [.. groups.Select(group => ((optim.IMomentum)group).Momentum)];
        }
    }
}
