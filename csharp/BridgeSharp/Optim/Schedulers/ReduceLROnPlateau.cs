using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Lowers the learning rates when a metric has stopped improving.</summary>
/// <remarks>
/// It is stepped with the metric: <c>step(loss)</c>.
/// Spec: R27.1. Source: torch/optim/lr_scheduler.py
/// </remarks>
public sealed class ReduceLROnPlateau : Scheduler
{
    private double factor;
    private double? defaultMinRate;
    private List<double> minRates;
    private int patience;
    private int cooldown;
    private double eps;
    private string mode;
    private double threshold;
    private string thresholdMode;
    private double best;
    private int cooldownCounter;
    private int badEpochs;

    /// <summary>Start the schedule.</summary>
    /// <param name="optimizer">Whose learning rates it moves.</param>
    /// <param name="mode"><c>"min"</c> where less is better, <c>"max"</c> where more is.</param>
    /// <param name="factor">What the rates are multiplied by, below 1.</param>
    /// <param name="patience">The number of epochs without an improvement that are let pass.</param>
    /// <param name="threshold">What counts as an improvement.</param>
    /// <param name="threshold_mode"><c>"rel"</c>: a share of the best metric; <c>"abs"</c>: a difference to it.</param>
    /// <param name="cooldown">The number of epochs after a change in which nothing is counted.</param>
    /// <param name="min_lr">The lowest rate, or one per group; 0 by default.</param>
    /// <param name="eps">A smaller change is not made.</param>
    /// <param name="reference">Whose rules: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">An option out of range.</exception>
    public ReduceLROnPlateau(
        optim.Optimizer optimizer,
        string mode = "min",
        double factor = 0.1,
        int patience = 10,
        double threshold = 1e-4,
        string threshold_mode = "rel",
        int cooldown = 0,
        PerGroup? min_lr = null,
        double eps = 1e-8,
        string reference = "2.10")
        : base(optimizer, reference)
    {
        if (factor >= 1)
        {
            throw new ArgumentException("Factor should be < 1.0.");
        }

        min_lr ??= 0;
        minRates = min_lr.For(optimizer)
            ?? throw new ArgumentException($"expected {groups.Count} min_lrs, got {min_lr.Count()}");
        defaultMinRate = min_lr.Single;
        (this.mode, thresholdMode) = (Mode(mode), ThresholdMode(threshold_mode));
        (this.factor, this.patience, this.threshold, this.cooldown, this.eps) = (factor, patience, threshold, cooldown, eps);
        best = Worst;
        last_epoch = 0;
        Show(Rates());
    }

    /// <summary>The lowest rates, by group; to be changed where groups are added.</summary>
    public IList<double> min_lrs => minRates;

    /// <inheritdoc/>
    internal override bool MayFail => true;

    private double Worst => mode == "min" ? double.PositiveInfinity : double.NegativeInfinity;

    /// <summary>Refuse a step without a metric.</summary>
    /// <param name="epoch">Not used.</param>
    /// <exception cref="ArgumentException">Always.</exception>
    public override void step(int? epoch)
        => throw new ArgumentException("ReduceLROnPlateau.step() missing 1 required positional argument: 'metrics'");

    /// <summary>Move on by one epoch.</summary>
    /// <param name="metrics">The metric.</param>
    public void step(double metrics) => step(metrics, null);

    /// <summary>Move on by one epoch, or to a given one.</summary>
    /// <param name="current">The metric.</param>
    /// <param name="epoch">The number to go to; without, the next.</param>
    public override void step(double current, int? epoch = null)
    {
        last_epoch = epoch ?? last_epoch + 1;
        (best, badEpochs) = IsBetter(current) ? (current, 0) : (best, badEpochs + 1);
        if (cooldownCounter > 0)
        {
            (cooldownCounter, badEpochs) = (cooldownCounter - 1, 0);
        }

        if (badEpochs > patience)
        {
            Reduce();
            (cooldownCounter, badEpochs) = (cooldown, 0);
        }

        Show(Rates());
    }

    /// <inheritdoc/>
    internal override void Exchange(StateFields state)
    {
        state.Field("factor", ref factor);
        if (!old)
        {
            state.Field("default_min_lr", ref defaultMinRate, rate => rate, given => given is null ? null : StateFields.Number(given));
        }

        state.Field("min_lrs", ref minRates);
        state.Field("patience", ref patience);
        state.Constant("verbose", false, when: old);
        state.Field("cooldown", ref cooldown);
        state.Field("mode", ref mode, text => text, given => Mode(StateFields.Typed<string>(given)));
        state.Field("threshold", ref threshold);
        state.Field("threshold_mode", ref thresholdMode, text => text, given => ThresholdMode(StateFields.Typed<string>(given)));
        state.Constant("mode_worse", Worst);
        state.Field("best", ref best);
        state.Field("cooldown_counter", ref cooldownCounter);
        state.Field("num_bad_epochs", ref badEpochs);
        state.Field("eps", ref eps);
        var epoch = last_epoch;
        state.Field("last_epoch", ref epoch);
        last_epoch = epoch;
        if (state.Reads || !old || last_epoch != 0)
        {
            ExchangeRates(state);
        }
    }

    private static string Mode(string mode)
        => mode is "min" or "max" ? mode : throw new ArgumentException($"mode {mode} is unknown!");

    private static string ThresholdMode(string mode)
        => mode is "rel" or "abs" ? mode : throw new ArgumentException($"threshold mode {mode} is unknown!");

    private bool IsBetter(double metric) => (mode, thresholdMode) switch
    {
        ("min", "rel") => metric < best * (1 - threshold),
        ("min", _) => metric < best - threshold,
        (_, "rel") => metric > best * (threshold + 1),
        _ => metric > best + threshold,
    };

    private void Reduce()
    {
        if (groups.Count != minRates.Count && !old)
        {
            minRates = defaultMinRate is { } rate
                ? [.. Enumerable.Repeat(rate, groups.Count)]
                : throw new InvalidOperationException(
                    $"The number of param groups in the `optimizer` ({groups.Count}) differs from when `ReduceLROnPlateau` was initialized "
                    + $"({minRates.Count}), usually due to a new param group being added to the optimizer. Please modify the `min_lrs` field "
                    + "to match the length of the `optimizer` param groups.");
        }

        foreach (var (index, group) in groups.Index())
        {
            var reduced = group.LearningRate * factor;
            reduced = minRates[index] > reduced ? minRates[index] : reduced;
            group.LearningRate = group.LearningRate - reduced > eps ? reduced : group.LearningRate;
        }
    }
}
