using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Steps several schedulers at once, each from the learning rates that the one before leaves.</summary>
/// <remarks>Spec: R27.1. Source: torch/optim/lr_scheduler.py</remarks>
public sealed class ChainedScheduler : CombinedScheduler
{
    /// <summary>Chain the schedulers.</summary>
    /// <param name="schedulers">At least one.</param>
    /// <param name="optimizer">Theirs; by default that of the first.</param>
    /// <param name="reference">Whose rules: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">No scheduler, one that needs a metric, or one of another optimizer.</exception>
    public ChainedScheduler(IEnumerable<Scheduler> schedulers, optim.Optimizer? optimizer = null, string reference = "2.10")
        : base(optimizer ?? First(schedulers).optimizer, schedulers, reference)
    {
        First(Parts);
        Check();
        Show(Rates());
    }

    /// <inheritdoc/>
    private protected override void Advance()
    {
        foreach (var part in Parts)
        {
            part.step();
        }

        Show(Rates());
    }

    /// <inheritdoc/>
    private protected override string Stranger(int index)
        => $"ChainedScheduler expects all schedulers to belong to the same optimizer, but got schedulers at index 0 and {index} to be different";

    private static Scheduler First(IEnumerable<Scheduler> schedulers) => schedulers.FirstOrDefault()
        ?? throw new ArgumentException("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.");
}
