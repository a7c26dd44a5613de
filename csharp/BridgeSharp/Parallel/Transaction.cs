using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;
using static TorchSharp.torch.optim.lr_scheduler.impl;

namespace BridgeSharp.Parallel;

/// <summary>What a step may change, kept so that it can be given back.</summary>
/// <remarks>
/// Gradients are kept by reference: a step makes new ones. Buffers and random states are copied, as they change in the
/// forward. Parameters and optimizers change only in the update: they are copied by <see cref="BeforeUpdate"/>, and
/// only where an update can fail half-way. It lives inside a dispose scope. Spec: R21.1, R21.2.
/// </remarks>
internal sealed class Transaction : IDisposable
{
    /// <summary>Schedulers that only do arithmetic.</summary>
    private static readonly HashSet<Type> Schedulers =
    [
        typeof(StepLR), typeof(MultiStepLR), typeof(ConstantLR), typeof(LinearLR), typeof(ExponentialLR), typeof(CosineAnnealingLR),
    ];

    private readonly IReadOnlyList<optim.Optimizer> optimizers;
    private readonly IReadOnlyList<optim.lr_scheduler.LRScheduler> schedulers;
    private readonly RandomStates states;
    private readonly Accumulator accumulator;
    private readonly List<Parameter> parameters;
    private readonly List<Tensor?> gradients;
    private readonly BufferSnapshot buffers;
    private readonly Tensor[] random;
    private readonly (int Batches, double Total, Tensor?[] Sums) accumulated;
    private readonly List<FieldSnapshot> updates = [];
    private List<Tensor> values = [];
    private bool committed;

    /// <summary>Keep gradients, buffers and random states.</summary>
    public Transaction(
        IReadOnlyList<nn.Module> replicas,
        IReadOnlyList<optim.Optimizer> optimizers,
        IReadOnlyList<optim.lr_scheduler.LRScheduler> schedulers,
        RandomStates states,
        Accumulator accumulator)
    {
        this.optimizers = optimizers;
        this.schedulers = schedulers;
        this.states = states;
        this.accumulator = accumulator;
        accumulated = accumulator.State;
        parameters = [.. replicas.SelectMany(Registered.Parameters)];
        gradients = [.. parameters.Select(parameter => parameter.grad)];
        buffers = new BufferSnapshot(replicas);
        random = states.snapshot();
    }

    /// <summary>Copy parameters and optimizers, unless nothing in the update can fail half-way.</summary>
    /// <remarks>
    /// That holds for BridgeSharp's optimizers, for dense gradients: they only do arithmetic, and refuse before it what
    /// they cannot do; not for LBFGS, which calls the user's code. It holds for BridgeSharp's schedulers without functions
    /// of the user's, and for those of TorchSharp that are listed here.
    /// </remarks>
    /// <param name="always">For another change than an update.</param>
    public void BeforeUpdate(bool always = false)
    {
        if (!always && optimizers.All(CannotFail) && schedulers.All(CannotFail))
        {
            return;
        }

        values = [.. parameters.Select(parameter => parameter.detach().clone())];
        updates.AddRange(optimizers.Concat<object>(schedulers).Select(item => new FieldSnapshot(item)));
    }

    /// <summary>Tell whether anything has drawn random numbers since the beginning.</summary>
    public bool Drew() => states.moved(random);

    /// <summary>Keep what the step has done.</summary>
    public void Commit() => committed = true;

    /// <summary>Give everything back, unless the step was committed.</summary>
    public void Dispose()
    {
        if (!committed)
        {
            RollBack();
        }

        accumulator.Discard(accumulated);
        foreach (var state in random)
        {
            state.Dispose();
        }
    }

    private void RollBack()
    {
        states.restore(random);
        var failed = accumulator.State;
        accumulator.Restore(accumulated);
        accumulator.Discard(failed);
        buffers.Restore();
        using var mode = no_grad();
        foreach (var (parameter, value) in parameters.Zip(values))
        {
            parameter.copy_(value);
        }

        foreach (var (parameter, gradient) in parameters.Zip(gradients))
        {
            parameter.grad = gradient;
        }

        updates.ForEach(update => update.Restore());
    }

    private static bool CannotFail(optim.Optimizer optimizer)
        => optimizer is Optim.Optimizer { FailsHalfWay: false }
            && optimizer.parameters().All(parameter => parameter.grad is not { is_sparse: true });

    private static bool CannotFail(optim.lr_scheduler.LRScheduler scheduler)
        => scheduler is Optim.Scheduler own ? !own.MayFail : Schedulers.Contains(scheduler.GetType());
}
