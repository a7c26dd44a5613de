using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>Trains replicas on one batch at a time; a step that fails changes nothing.</summary>
/// <remarks>Spec: R8.1, R20.1, R20.3, R21.1.</remarks>
internal sealed class TrainerStep : IDisposable
{
    private readonly TrainerOptions options;
    private readonly IReadOnlyList<nn.Module> replicas;
    private readonly IReadOnlyList<optim.Optimizer> optimizers;
    private readonly IReadOnlyList<Device> devices;
    private readonly RandomStates states;
    private readonly Accumulator accumulator;
    private bool? drew;

    /// <summary>Make the schedulers, and start without gradients.</summary>
    /// <param name="replicas">The modules; the first is the model.</param>
    /// <param name="optimizers">That of the model, or in mode <c>"all"</c> one per replica.</param>
    /// <param name="loss"><c>(outputs, targets)</c> to a scalar and a count.</param>
    /// <param name="devices">One per replica.</param>
    /// <param name="options">What else there is to say.</param>
    public TrainerStep(
        IReadOnlyList<nn.Module> replicas,
        IReadOnlyList<optim.Optimizer> optimizers,
        Func<object, object, (Tensor, double)> loss,
        IReadOnlyList<Device> devices,
        TrainerOptions options)
    {
        Loss = loss;
        this.options = options;
        this.replicas = replicas;
        this.optimizers = optimizers;
        Schedulers = options.scheduler is { } make ? [.. optimizers.Select(make)] : [];
        if (Schedulers.Any(own => own is Optim.ReduceLROnPlateau or optim.lr_scheduler.impl.ReduceLROnPlateau))
        {
            throw new ArgumentException("Trainer: expected a scheduler that steps without a metric, got ReduceLROnPlateau: step it yourself, after evaluate");
        }

        this.devices = devices;
        states = new RandomStates(devices);
        accumulator = new Accumulator([.. Registered.Parameters(replicas[0])]);
    }

    /// <summary>The loss.</summary>
    public Func<object, object, (Tensor, double)> Loss { get; }

    /// <summary>The schedulers of the optimizers.</summary>
    public IReadOnlyList<optim.lr_scheduler.LRScheduler> Schedulers { get; }

    /// <summary>How many updates there were.</summary>
    public long Updates { get; private set; }

    /// <summary>Who watches the steps.</summary>
    public Observer Observer { get; set; } = new();

    /// <summary>Train on one batch, and return its loss with what that is over.</summary>
    public (double Loss, double Count) Train(object inputs, object targets)
        => Observer.Watched(Observer, () => TrainBatch(inputs, targets));

    /// <summary>Update from the batches that wait for more, and tell whether there were any.</summary>
    public bool Flush()
    {
        if (accumulator.State.Batches == 0)
        {
            return false;
        }

        return Observer.Watched(Observer, () =>
        {
            using var scope = NewDisposeScope();
            using var transaction = Transaction();
            Update(transaction);
            transaction.Commit();
            return true;
        });
    }

    /// <summary>Dispose the random states and the gradients that wait.</summary>
    public void Dispose()
    {
        states.Dispose();
        accumulator.Dispose();
    }

    /// <summary>Train on one batch, if need be again.</summary>
    private (double Loss, double Count) TrainBatch(object inputs, object targets)
    {
        using var scope = NewDisposeScope();
        var shards = bridge.scatter((inputs, targets), devices);
        foreach (var (index, (shard, wanted)) in shards.Index())
        {
            Observer.inputs(shard, wanted, index);
        }

        // A model that drew for the first time while its replicas ran at once: undone; now in turn.
        return Attempt(shards) ?? TrainBatch(inputs, targets);
    }

    /// <summary>Train on the shards of one batch, or return null where the model drew unexpectedly.</summary>
    private (double Loss, double Count)? Attempt(IReadOnlyList<(object Inputs, object Targets)> shards)
    {
        var in_turn = drew != false || RandomStates.draws(replicas[0]);
        using var transaction = Transaction();
        var whole = Gradients(shards, in_turn ? states : null);
        var draws = transaction.Drew();
        drew = draws || drew == true;
        if (draws && !in_turn && shards.Count > 1)
        {
            Observer.undo();
            return null;
        }

        Observer.gradients("backward");
        bridge.average(replicas, reduction: "sum", broadcast: false);
        if (options.accumulate > 1)
        {
            accumulator.Add(options.reduction == "sum" ? 1 : whole.Count);
        }

        if (accumulator.State.Batches == 0 || accumulator.State.Batches == options.accumulate)
        {
            Update(transaction);
        }

        transaction.Commit();
        return whole;
    }

    /// <summary>Run forwards and backwards: in turn where the model draws, or may.</summary>
    private (double Loss, double Count) Gradients(IReadOnlyList<(object Inputs, object Targets)> shards, RandomStates? own)
    {
        Follow.follow(replicas, options.buffers);
        foreach (var replica in replicas)
        {
            replica.zero_grad(set_to_none: true);
        }

        var passes = replicas.Select(replica => new Func<(object Inputs, object Targets), (Tensor, double)>(
            shard => Forward.Run(replica, Loss, options.reduction, shard.Inputs, shard.Targets)));
        var together = shards.Count > 1 && SyncBatchNorm.synchronizes(replicas[0]);
        var parts = bridge.Apply([.. passes], shards, devices, null, own, own is not null, together);
        foreach (var (index, part) in parts.Index())
        {
            Observer.loss(part.Item1, index);
        }

        return Forward.Backward(parts, options.reduction, together, own);
    }

    /// <summary>Clip the gradients, step the optimizers and their schedulers.</summary>
    private void Update(Transaction transaction)
    {
        if (accumulator.State.Batches > 0)
        {
            accumulator.Finish(mean: options.reduction != "sum");
        }

        if (replicas.Count > 1 || options.accumulate > 1)
        {
            Observer.gradients("reduce");
        }

        bridge.clip_gradients(Registered.Parameters(replicas[0]), options.clip_norm, options.clip_value);
        if (options.clip_norm is not null || options.clip_value is not null)
        {
            Observer.gradients("clip");
        }

        transaction.BeforeUpdate();
        var factor = options.scaling?.at(Updates) ?? 1;
        var scales = optimizers.Select(own => LinearScaling.Scaled(own, factor)).ToList();
        try
        {
            if (options.mode == "master")
            {
                bridge.step(replicas, optimizers[0], options.buffers);
            }
            else
            {
                bridge.broadcast_gradients(replicas);
                bridge.step(replicas, optimizers, options.buffers);
            }
        }
        finally
        {
            scales.ForEach(scale => scale.Dispose());
        }

        foreach (var scheduler in Schedulers)
        {
            scheduler.step();
        }

        Updates++;
    }

    /// <summary>Keep what a step may change.</summary>
    private Transaction Transaction() => new(replicas, optimizers, Schedulers, states, accumulator);
}
