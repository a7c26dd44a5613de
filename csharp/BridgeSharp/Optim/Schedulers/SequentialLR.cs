using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Steps one scheduler after the other: a milestone is the epoch at which the next one takes over.</summary>
/// <remarks>Spec: R27.1. Source: torch/optim/lr_scheduler.py</remarks>
public sealed class SequentialLR : CombinedScheduler
{
    private List<int> milestones;

    /// <summary>Give the groups their first rates, and start the first scheduler.</summary>
    /// <param name="optimizer">Whose learning rates it moves.</param>
    /// <param name="schedulers">At least one.</param>
    /// <param name="milestones">One less than schedulers, increasing.</param>
    /// <param name="last_epoch">The number of the last epoch, to go on from there; -1 starts.</param>
    /// <param name="reference">Whose rules: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">No scheduler, one that needs a metric, one of another optimizer, or another number of milestones.</exception>
    public SequentialLR(
        optim.Optimizer optimizer,
        IEnumerable<Scheduler> schedulers,
        IEnumerable<int> milestones,
        int last_epoch = -1,
        string reference = "2.10")
        : base(optimizer, schedulers, reference)
    {
        if (Parts.Count == 0 && !old)
        {
            throw new ArgumentException("SequentialLR expects at least one scheduler, but got no scheduler.");
        }

        Check();
        this.milestones = [.. milestones];
        if (this.milestones.Count != Parts.Count - 1)
        {
            throw new ArgumentException(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone points, "
                + $"but got number of schedulers {Parts.Count} and the number of milestones to be equal to {this.milestones.Count}");
        }

        this.last_epoch = last_epoch + 1;
        Begin();
    }

    /// <inheritdoc/>
    internal override void Exchange(StateFields state)
    {
        var epoch = last_epoch;
        state.Field("_milestones", ref milestones);
        state.Field("last_epoch", ref epoch);
        last_epoch = epoch;
        base.Exchange(state);
    }

    /// <inheritdoc/>
    private protected override void Advance()
    {
        last_epoch++;
        var index = PythonMath.BisectRight(milestones, last_epoch);
        var part = Parts[index];
        if (index == 0 || milestones[index - 1] != last_epoch)
        {
            part.step();
        }
        else if (old)
        {
            part.step(0);
        }
        else
        {
            part.Update(0);
        }

        Show(part.get_last_lr());
    }

    /// <inheritdoc/>
    private protected override string Stranger(int index)
        => "Sequential Schedulers expects all schedulers to belong to the same optimizer, "
            + $"but got schedulers at index {index} to be different than the optimizer passed in.";

    /// <summary>Undo the first steps of all schedulers, and make that of the first one.</summary>
    private void Begin()
    {
        foreach (var group in groups)
        {
            group.LearningRate = GroupEntries.Get(group, "initial_lr");
        }

        foreach (var part in Parts)
        {
            Undo(part);
        }

        Parts[0].InitialStep();
        Show(Parts[0].get_last_lr());
    }
}
