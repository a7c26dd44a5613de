using System.Globalization;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Multiplies the learning rates by <c>gamma</c> at each milestone, once for every time that it is listed.</summary>
/// <remarks>Spec: R27.1. Source: torch/optim/lr_scheduler.py</remarks>
public sealed class MultiStepLR : Scheduler
{
    private Dictionary<int, int> milestones = [];
    private double gamma;

    /// <summary>Start the schedule.</summary>
    /// <param name="optimizer">Whose learning rates it moves.</param>
    /// <param name="milestones">Numbers of epochs, in any order; one that is listed twice counts twice.</param>
    /// <param name="gamma">The factor.</param>
    /// <param name="last_epoch">The number of the last epoch, to go on from there; -1 starts.</param>
    /// <param name="reference">Whose rules: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    public MultiStepLR(
        optim.Optimizer optimizer, IEnumerable<int> milestones, double gamma = 0.1, int last_epoch = -1, string reference = "2.10")
        : base(optimizer, reference)
    {
        foreach (var milestone in milestones)
        {
            this.milestones[milestone] = this.milestones.GetValueOrDefault(milestone) + 1;
        }

        this.gamma = gamma;
        Start(last_epoch);
    }

    /// <inheritdoc/>
    internal override bool MayFail => base.MayFail || Math.Abs(gamma) > 1;

    /// <inheritdoc/>
    internal override void Exchange(StateFields state)
    {
        state.Field("milestones", ref milestones, Written, Read);
        state.Field("gamma", ref gamma);
        base.Exchange(state);
    }

    /// <inheritdoc/>
    protected override IEnumerable<double> get_lr()
        => milestones.TryGetValue(last_epoch, out var count) ? Rates(PythonMath.Power(gamma, count)) : Rates();

    /// <inheritdoc/>
    protected override IEnumerable<double> get_closed_form_lr()
    {
        var passed = milestones.Where(milestone => milestone.Key <= last_epoch).Sum(milestone => Math.Max(milestone.Value, 0));
        return base_lrs.Select(rate => rate * PythonMath.Power(gamma, passed));
    }

    private static Dictionary<string, object?> Written(Dictionary<int, int> counts)
        => counts.ToDictionary(milestone => milestone.Key.ToString(CultureInfo.InvariantCulture), milestone => (object?)(long)milestone.Value);

    private static Dictionary<int, int> Read(object? given) => StateFields.Entries(given).ToDictionary(
        milestone => int.TryParse(milestone.Key, CultureInfo.InvariantCulture, out var epoch)
            ? epoch
            : throw new ArgumentException($"expected numbers of epochs, got {milestone.Key}"),
        milestone => StateFields.Whole(milestone.Value));
}
