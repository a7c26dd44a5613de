using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Steps other schedulers of the same optimizer.</summary>
public abstract class CombinedScheduler : Scheduler
{
    private readonly List<Scheduler> parts;
    private bool begun;

    /// <summary>Take the schedulers.</summary>
    private protected CombinedScheduler(optim.Optimizer optimizer, IEnumerable<Scheduler> schedulers, string reference)
        : base(optimizer, reference)
        => parts = [.. schedulers];

    /// <inheritdoc/>
    internal override bool MayFail => parts.Exists(part => part is CombinedScheduler || part.MayFail);

    /// <summary>The schedulers.</summary>
    private protected IReadOnlyList<Scheduler> Parts => parts;

    /// <inheritdoc/>
    public sealed override void step(int? epoch)
    {
        if (epoch is not null)
        {
            throw new ArgumentException($"{GetType().Name}.step() takes 1 positional argument but 2 were given");
        }

        Advance();
    }

    /// <inheritdoc/>
    internal override void Exchange(StateFields state)
    {
        ExchangeRates(state);
        if (begun)
        {
            state.Field("_step_count", ref _step_count);
            state.Constant("_is_initial", false, when: !old);
        }

        state.Nested("_schedulers", parts);
    }

    /// <inheritdoc/>
    internal override void InitialStep()
    {
        begun = true;
        base.InitialStep();
    }

    /// <summary>Undo the first step of a scheduler, or of those that it steps.</summary>
    internal void Undo(Scheduler part)
    {
        switch (part)
        {
            case CombinedScheduler combined when !old:
                combined.parts.ForEach(Undo);
                break;
            case ChainedScheduler:
                throw new InvalidOperationException("'ChainedScheduler' object has no attribute 'last_epoch'");
            default:
                part.last_epoch--;
                break;
        }
    }

    /// <inheritdoc/>
    protected sealed override IEnumerable<double> get_lr()
        => throw new NotSupportedException($"SequentialLR: expected {GetType().Name} as its first scheduler only");

    /// <summary>Move on by one epoch, or update.</summary>
    private protected abstract void Advance();

    /// <summary>Refuse schedulers that need a metric, and those of another optimizer.</summary>
    private protected void Check()
    {
        foreach (var (index, part) in parts.Index())
        {
            if (part is ReduceLROnPlateau)
            {
                throw new ArgumentException(
                    $"{GetType().Name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be specified when calling `step`, "
                    + $"but got one at index {index} in the given schedulers sequence.");
            }

            if (part.optimizer != optimizer)
            {
                throw new ArgumentException(old ? Stranger(index) :
                    $"{GetType().Name} expects all schedulers to belong to the same optimizer, but got scheduler {part.GetType().Name} at index {index} "
                    + $"has {part.optimizer.GetType().Name}, which is different from {optimizer.GetType().Name}.");
            }
        }
    }

    /// <summary>Say in the words of PyTorch 1.13 that a scheduler is of another optimizer.</summary>
    private protected abstract string Stranger(int index);
}
