using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>Trains replicas on one batch at a time; a step that fails changes nothing.</summary>
/// <remarks>Spec: R8.1, R20.1, R20.3, R21.1.</remarks>
internal sealed class TrainerStep : IDisposable
{
    private readonly IReadOnlyList<Device> devices;

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
        Options = options;
        Replicas = replicas;
        Optimizers = optimizers;
        Schedulers = options.scheduler is { } make ? [.. optimizers.Select(make)] : [];
        if (Schedulers.Any(own => own is Optim.ReduceLROnPlateau or optim.lr_scheduler.impl.ReduceLROnPlateau))
        {
            throw new ArgumentException("Trainer: expected a scheduler that steps without a metric, got ReduceLROnPlateau: step it yourself, after evaluate");
        }

        this.devices = devices;
        States = new RandomStates(devices);
        Accumulator = new Accumulator([.. Registered.Parameters(replicas[0])]);
    }

    /// <summary>What else there is to say.</summary>
    public TrainerOptions Options { get; }

    /// <summary>The modules; the first is the model.</summary>
    public IReadOnlyList<nn.Module> Replicas { get; }

    /// <summary>That of the model, or one per replica.</summary>
    public IReadOnlyList<optim.Optimizer> Optimizers { get; }

    /// <summary>The random states of the replicas.</summary>
    public RandomStates States { get; }

    /// <summary>The gradients that wait for more batches.</summary>
    public Accumulator Accumulator { get; }

    /// <summary>Whether the model has drawn; null before its first batch.</summary>
    public bool? Drew { get; set; }

    /// <summary>Whether an epoch has begun and not ended.</summary>
    public bool Open { get; set; }

    /// <summary>How many batches it was trained on.</summary>
    public long Steps { get; set; }

    /// <summary>The loss.</summary>
    public Func<object, object, (Tensor, double)> Loss { get; }

    /// <summary>The schedulers of the optimizers.</summary>
    public IReadOnlyList<optim.lr_scheduler.LRScheduler> Schedulers { get; }

    /// <summary>How many updates there were.</summary>
    public long Updates { get; set; }

    /// <summary>Who watches the steps.</summary>
    public Observer Observer { get; set; } = new();

    /// <summary>Train on one batch, and return its loss with what that is over.</summary>
    public (double Loss, double Count) Train(object inputs, object targets)
        => Observer.Watched(Observer, () => TrainBatch(inputs, targets));

    /// <summary>Update from the batches that wait for more, and tell whether there were any.</summary>
    public bool Flush()
    {
        if (Accumulator.State.Batches == 0)
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
        States.Dispose();
        Accumulator.Dispose();
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
        if (Attempt(shards) is not { } whole)
        {
            return TrainBatch(inputs, targets);
        }

        Steps++;
        return whole;
    }

    /// <summary>Train on the shards of one batch, or return null where the model drew unexpectedly.</summary>
    private (double Loss, double Count)? Attempt(IReadOnlyList<(object Inputs, object Targets)> shards)
    {
        var in_turn = Drew != false || RandomStates.draws(Replicas[0]);
        using var transaction = Transaction();
        var whole = Gradients(shards, in_turn ? States : null);
        var draws = transaction.Drew();
        Drew = draws || Drew == true;
        if (draws && !in_turn && shards.Count > 1)
        {
            Observer.undo();
            return null;
        }

        Observer.gradients("backward");
        bridge.average(Replicas, reduction: "sum", broadcast: false);
        if (Options.accumulate > 1)
        {
            Accumulator.Add(Options.reduction == "sum" ? 1 : whole.Count);
        }

        if (Accumulator.State.Batches == 0 || Accumulator.State.Batches == Options.accumulate)
        {
            Update(transaction);
        }

        transaction.Commit();
        return whole;
    }

    /// <summary>Run forwards and backwards: in turn where the model draws, or may.</summary>
    private (double Loss, double Count) Gradients(IReadOnlyList<(object Inputs, object Targets)> shards, RandomStates? own)
    {
        Follow.follow(Replicas, Options.buffers);
        foreach (var replica in Replicas)
        {
            replica.zero_grad(set_to_none: true);
        }

        var passes = Replicas.Select(replica => new Func<(object Inputs, object Targets), (Tensor, double)>(
            shard => Forward.Run(replica, Loss, Options.reduction, shard.Inputs, shard.Targets)));
        var together = shards.Count > 1 && SyncBatchNorm.synchronizes(Replicas[0]);
        var parts = bridge.Apply([.. passes], shards, devices, null, own, own is not null, together);
        foreach (var (index, part) in parts.Index())
        {
            Observer.loss(part.Item1, index);
        }

        return Forward.Backward(parts, Options.reduction, together, own);
    }

    /// <summary>Clip the gradients, step the optimizers and their schedulers.</summary>
    private void Update(Transaction transaction)
    {
        if (Accumulator.State.Batches > 0)
        {
            Accumulator.Finish(mean: Options.reduction != "sum");
        }

        if (Replicas.Count > 1 || Options.accumulate > 1)
        {
            Observer.gradients("reduce");
        }

        bridge.clip_gradients(Registered.Parameters(Replicas[0]), Options.clip_norm, Options.clip_value);
        if (Options.clip_norm is not null || Options.clip_value is not null)
        {
            Observer.gradients("clip");
        }

        transaction.BeforeUpdate();
        var factor = Options.scaling?.at(Updates) ?? 1;
        var scales = Optimizers.Select(own => LinearScaling.Scaled(own, factor)).ToList();
        try
        {
            if (Options.mode == "master")
            {
                bridge.step(Replicas, Optimizers[0], Options.buffers);
            }
            else
            {
                bridge.broadcast_gradients(Replicas);
                bridge.step(Replicas, Optimizers, Options.buffers);
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
    public Transaction Transaction() => new(Replicas, Optimizers, Schedulers, States, Accumulator);
}
