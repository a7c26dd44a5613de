using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>A schedule by functions of the epoch, one per group.</summary>
/// <remarks>The functions are not part of the state. Spec: R27.1.</remarks>
public abstract class FunctionScheduler : Scheduler
{
    private protected FunctionScheduler(optim.Optimizer optimizer, IEnumerable<Func<int, double>> lr_lambda, string reference)
        : base(optimizer, reference)
    {
        functions = [.. lr_lambda];
        if (functions.Count != groups.Count)
        {
            throw new ArgumentException($"Expected {groups.Count} lr_lambdas, but got {functions.Count}");
        }
    }

    /// <inheritdoc/>
    internal override bool MayFail => true;

    /// <summary>The functions, one per group.</summary>
    private protected IReadOnlyList<Func<int, double>> functions { get; }

    /// <inheritdoc/>
    internal override void Exchange(StateFields state)
    {
        base.Exchange(state);
        state.Functions("lr_lambdas", functions.Count);
    }
}
