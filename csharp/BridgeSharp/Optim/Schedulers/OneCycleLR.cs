using BridgeSharp.Parallel;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Takes the learning rates up to a maximum and down to nearly 0 in a fixed number of updates, and momentum the other way.</summary>
/// <remarks>Spec: R27.1. Source: torch/optim/lr_scheduler.py</remarks>
public sealed class OneCycleLR : Scheduler
{
    private readonly bool beta1;
    private int totalSteps;
    private List<OneCyclePhase> phases;
    private string strategy;
    private bool cycleMomentum;

    /// <summary>Start the schedule.</summary>
    /// <param name="optimizer">Whose learning rates it moves.</param>
    /// <param name="max_lr">The highest rate, or one per group.</param>
    /// <param name="total_steps">The number of updates; or else there are <paramref name="epochs"/> of <paramref name="steps_per_epoch"/>.</param>
    /// <param name="epochs">The number of epochs.</param>
    /// <param name="steps_per_epoch">The number of updates of each.</param>
    /// <param name="pct_start">The share of the way up, from 0 to 1.</param>
    /// <param name="anneal_strategy"><c>"cos"</c> or <c>"linear"</c>.</param>
    /// <param name="cycle_momentum">Whether momentum, or the first beta, is moved too.</param>
    /// <param name="base_momentum">The lowest momentum, or one per group; 0.85 by default.</param>
    /// <param name="max_momentum">The highest momentum, or one per group; 0.95 by default.</param>
    /// <param name="div_factor">The highest rate by the first one.</param>
    /// <param name="final_div_factor">The first rate by the last one.</param>
    /// <param name="three_phase">Go down as long as up, then down to the last rate.</param>
    /// <param name="last_epoch">The number of the last epoch, to go on from there; -1 starts.</param>
    /// <param name="reference">Whose rules: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">An option out of range, or an optimizer without momentum.</exception>
    public OneCycleLR(
        optim.Optimizer optimizer,
        PerGroup max_lr,
        int? total_steps = null,
        int? epochs = null,
        int? steps_per_epoch = null,
        double pct_start = 0.3,
        string anneal_strategy = "cos",
        bool cycle_momentum = true,
        PerGroup? base_momentum = null,
        PerGroup? max_momentum = null,
        double div_factor = 25,
        double final_div_factor = 1e4,
        bool three_phase = false,
        int last_epoch = -1,
        string reference = "2.10")
        : base(optimizer, reference)
    {
        totalSteps = Total(total_steps, epochs, steps_per_epoch);
        phases = OneCyclePhase.All(pct_start, totalSteps, three_phase);
        if (pct_start is < 0 or > 1)
        {
            throw new ArgumentException($"Expected float between 0 and 1 pct_start, but got {Text.Number(pct_start)}");
        }

        strategy = anneal_strategy is "cos" or "linear" ? anneal_strategy : throw new ArgumentException(
            $"anneal_strategy must {(old ? "by" : "be")} one of 'cos' or 'linear', instead got {anneal_strategy}");
        var highest = max_lr.For(optimizer, nameof(max_lr), old);
        Prepare(last_epoch, highest, div_factor, final_div_factor);
        cycleMomentum = cycle_momentum;
        if (cycle_momentum)
        {
            beta1 = MomentumEntry.UsesBeta1(optimizer, betas: true, old ? "momentum" : "momentum or beta1");
            var high = (max_momentum ?? 0.95).For(optimizer, nameof(max_momentum), old);
            Prepare(last_epoch, (base_momentum ?? 0.85).For(optimizer, nameof(base_momentum), old), high);
        }

        Start(last_epoch);
    }

    /// <inheritdoc/>
    internal override bool MayFail => true;

    /// <inheritdoc/>
    internal override void Exchange(StateFields state)
    {
        state.Field("total_steps", ref totalSteps);
        state.Field("_schedule_phases", ref phases, OneCyclePhase.Written, OneCyclePhase.Read);
        if (!old)
        {
            state.Field("_anneal_func_type", ref strategy);
        }

        state.Field("cycle_momentum", ref cycleMomentum);
        state.Constant("use_beta1", beta1, when: cycleMomentum);
        base.Exchange(state);
    }

    /// <inheritdoc/>
    protected override IEnumerable<double> get_lr()
    {
        if (last_epoch > totalSteps)
        {
            throw new ArgumentException(
                $"Tried to step {last_epoch + (old ? 1 : 0)} times. The specified number of total steps is {totalSteps}");
        }

        var found = phases.FindIndex(candidate => last_epoch <= candidate.EndStep);
        var index = found < 0 ? phases.Count - 1 : found;
        var phase = phases[index];
        var start = index == 0 ? 0 : phases[index - 1].EndStep;
        List<double> rates = [];
        foreach (var group in groups)
        {
            double Entry(string name) => GroupEntries.Get(group, name);
            var share = PythonMath.Divide(last_epoch - start, phase.EndStep - start);
            rates.Add(Anneal(Entry(phase.StartRate), Entry(phase.EndRate), share));
            if (cycleMomentum)
            {
                MomentumEntry.Set(group, beta1, Anneal(Entry(phase.StartMomentum), Entry(phase.EndMomentum), share));
            }
        }

        return rates;
    }

    private static int Total(int? steps, int? epochs, int? perEpoch)
    {
        if (steps is { } total)
        {
            return total > 0 ? total : throw new ArgumentException($"Expected positive integer total_steps, but got {total}");
        }

        if (epochs is not { } rounds || perEpoch is not { } each)
        {
            throw new ArgumentException("You must define either total_steps OR (epochs AND steps_per_epoch)");
        }

        if (rounds <= 0)
        {
            throw new ArgumentException($"Expected positive integer epochs, but got {rounds}");
        }

        return each > 0 ? rounds * each : throw new ArgumentException($"Expected positive integer steps_per_epoch, but got {each}");
    }

    private double Anneal(double start, double end, double share) => strategy == "cos"
        ? end + ((start - end) / 2 * (Math.Cos(Math.PI * share) + 1))
        : ((end - start) * share) + start;

    private void Prepare(int last_epoch, IReadOnlyList<double> highest, double divisor, double finalDivisor)
    {
        foreach (var (group, rate) in last_epoch == -1 ? groups.Zip(highest) : [])
        {
            var first = PythonMath.Divide(rate, divisor);
            GroupEntries.Set(group, "initial_lr", first);
            GroupEntries.Set(group, "max_lr", rate);
            GroupEntries.Set(group, "min_lr", PythonMath.Divide(first, finalDivisor));
        }
    }

    private void Prepare(int last_epoch, IReadOnlyList<double> lowest, IReadOnlyList<double> highest)
    {
        foreach (var ((group, low), high) in last_epoch == -1 ? groups.Zip(lowest).Zip(highest) : [])
        {
            MomentumEntry.Set(group, beta1, high);
            GroupEntries.Set(group, "max_momentum", high);
            GroupEntries.Set(group, "base_momentum", low);
        }
    }
}
