using BridgeSharp.Parallel;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp;

/// <summary>Trains one model on several replicas so that it comes out as on one device.</summary>
/// <remarks>
/// Every replica's forward runs once a step, on its own shard; losses are weighted by sample count, so that a mean loss
/// over uneven shards equals the mean loss over the whole batch. A step that fails leaves parameters, buffers,
/// gradients, optimizer and random states as they were.
/// Spec: R8.1, R8.2, R8.3, R8.4, R8.5, R8.6, R8.7, R20.1, R21.1.
/// </remarks>
public sealed class Trainer : IDisposable
{
    private readonly TrainerOptions options;
    private readonly TrainerStep training;
    private readonly bool ownsOptimizers;

    /// <summary>Replicate the model.</summary>
    /// <param name="model">The model, on <c>devices[0]</c>; it stays replica 0 and the caller's to dispose.</param>
    /// <param name="optimizer">On the model's parameters; the caller's to dispose.</param>
    /// <param name="loss"><c>(outputs, targets)</c> to a scalar.</param>
    /// <param name="devices">One per replica; one CPU by default.</param>
    /// <param name="options">What else there is to say.</param>
    /// <exception cref="ArgumentException">An option out of range.</exception>
    public Trainer(
        nn.Module model,
        optim.Optimizer optimizer,
        Func<Tensor, Tensor, Tensor> loss,
        IReadOnlyList<Device>? devices = null,
        TrainerOptions? options = null)
        : this(model, optimizer, (object outputs, object targets) => loss((Tensor)outputs, (Tensor)targets), devices, options)
    {
    }

    /// <summary>Replicate the model; its outputs and the targets may be trees.</summary>
    /// <param name="model">The model, on <c>devices[0]</c>; it stays replica 0 and the caller's to dispose.</param>
    /// <param name="optimizer">On the model's parameters; the caller's to dispose.</param>
    /// <param name="loss"><c>(outputs, targets)</c> to a scalar.</param>
    /// <param name="devices">One per replica; one CPU by default.</param>
    /// <param name="options">What else there is to say.</param>
    /// <exception cref="ArgumentException">An option out of range.</exception>
    public Trainer(
        nn.Module model,
        optim.Optimizer optimizer,
        Func<object, object, Tensor> loss,
        IReadOnlyList<Device>? devices = null,
        TrainerOptions? options = null)
        : this(model, Given(optimizer, options), (outputs, targets) => (loss(outputs, targets), 1), devices, options)
        => ownsOptimizers = false;

    /// <summary>Replicate the model; the trainer makes the optimizers, and the loss says what it counts.</summary>
    /// <param name="model">The model, on <c>devices[0]</c>; it stays replica 0 and the caller's to dispose.</param>
    /// <param name="optimizer">Makes an optimizer for the parameters of a replica; the trainer disposes it.</param>
    /// <param name="loss"><c>(outputs, targets)</c> to a scalar and a count; the count matters with reduction <c>"count"</c> only.</param>
    /// <param name="devices">One per replica; one CPU by default.</param>
    /// <param name="options">What else there is to say.</param>
    /// <exception cref="ArgumentException">An option out of range.</exception>
    public Trainer(
        nn.Module model,
        Func<IEnumerable<Parameter>, optim.Optimizer> optimizer,
        Func<object, object, (Tensor loss, double count)> loss,
        IReadOnlyList<Device>? devices = null,
        TrainerOptions? options = null)
    {
        this.options = (options ?? new TrainerOptions()).Checked();
        this.model = model;
        this.devices = devices ?? [CPU];
        Devices.Check("Trainer", this.devices);
        replicas = bridge.replicate(model, this.devices, this.options.factory);
        var stepped = this.options.mode == "all" ? replicas : replicas.Take(1);
        optimizers = [.. stepped.Select(replica => optimizer(Registered.Parameters(replica)))];
        training = new TrainerStep(replicas, optimizers, loss, this.devices, this.options);
        ownsOptimizers = true;
    }

    /// <summary>The model, replica 0.</summary>
    public nn.Module model { get; }

    /// <summary>The replicas; the first is the model.</summary>
    public IReadOnlyList<nn.Module> replicas { get; }

    /// <summary>The optimizer of replica 0.</summary>
    public optim.Optimizer optimizer => optimizers[0];

    /// <summary>The optimizers: one, or in mode <c>all</c> one per replica.</summary>
    public IReadOnlyList<optim.Optimizer> optimizers { get; }

    /// <summary>Their schedulers.</summary>
    public IReadOnlyList<optim.lr_scheduler.LRScheduler> schedulers => training.Schedulers;

    /// <summary>One device per replica.</summary>
    public IReadOnlyList<Device> devices { get; }

    /// <summary>How many updates there were.</summary>
    public long updates => training.Updates;

    /// <summary>How many batches it was trained on.</summary>
    public long steps => training.Steps;

    /// <summary>Who watches the steps.</summary>
    internal Observer observer
    {
        get => training.Observer;
        set => training.Observer = value;
    }

    /// <summary>Train on one batch and return its loss.</summary>
    /// <remarks>Spec: R8.1, R8.2, R21.1.</remarks>
    /// <param name="inputs">A tensor <c>(N, *)</c> or a tree; a tuple holds positional arguments.</param>
    /// <param name="targets">A tensor <c>(N, *)</c> or a tree.</param>
    /// <returns>The mean loss over the batch (with reduction <c>"sum"</c> the sum), before the update.</returns>
    /// <exception cref="ArgumentException">A batch that cannot be split.</exception>
    /// <exception cref="ReplicaException">At least one replica failed.</exception>
    public double step(object inputs, object targets) => training.Train(inputs, targets).Loss;

    /// <summary>Update from the batches that wait for more, as at the end of an epoch.</summary>
    /// <remarks>Spec: R7.5.</remarks>
    /// <returns>Whether there were any.</returns>
    public bool flush() => training.Flush();

    /// <summary>Train on every batch, <paramref name="epochs"/> times.</summary>
    /// <remarks>Spec: R8.3.</remarks>
    /// <param name="batches"><c>(inputs, targets)</c> pairs, iterated anew each epoch.</param>
    /// <param name="epochs">How often.</param>
    /// <param name="on_step">Called after each step with its number from 1 and its loss.</param>
    /// <returns>The mean loss of each epoch over its samples; of a loss with a sum and a count, over all counts.</returns>
    /// <exception cref="ArgumentException">An epoch without a batch, or a negative number of epochs.</exception>
    public IReadOnlyList<double> fit(IEnumerable<(object inputs, object targets)> batches, int epochs = 1, Action<int, double>? on_step = null)
    {
        if (epochs < 0)
        {
            throw new ArgumentException($"Trainer: expected epochs of at least 0, got {epochs}");
        }

        if (training.Open && batches is Data.Loader<(object, object)> { position: 0 })
        {
            // Broken off, or saved, between the last batch of an epoch and its end.
            flush();
        }

        var history = new List<double>();
        var number = 0;
        for (var epoch = 0; epoch < epochs; epoch++)
        {
            List<(double Value, double Count)> wholes = [];
            foreach (var (inputs, targets) in batches)
            {
                var (loss, count) = training.Train(inputs, targets);
                training.Open = true;
                wholes.Add((options.reduction == "sum" ? loss / count : loss, count));
                number++;
                on_step?.Invoke(number, loss);
            }

            flush();
            training.Open = false;
            history.Add(Evaluation.Mean(wholes));
        }

        return history;
    }

    /// <summary>Run the model in evaluation mode, without gradients, and gather the outputs.</summary>
    /// <remarks>Spec: R8.4.</remarks>
    /// <param name="inputs">A tensor <c>(N, *)</c> or a tree; a tuple holds positional arguments.</param>
    /// <returns>The outputs <c>(N, *)</c> on <c>devices[0]</c>.</returns>
    public object predict(object inputs)
    {
        Follow.follow(replicas, options.buffers);
        return Evaluation.Predict(replicas, devices, inputs);
    }

    /// <summary>Average a measure over all samples, in evaluation mode.</summary>
    /// <remarks>Spec: R8.4.</remarks>
    /// <param name="batches"><c>(inputs, targets)</c> pairs.</param>
    /// <param name="measure"><c>(outputs, targets)</c> to the mean over the batch; the loss by default.</param>
    /// <returns>The mean over all samples; of a loss with a sum and a count, over all counts.</returns>
    public double evaluate(IEnumerable<(object inputs, object targets)> batches, Func<object, object, Tensor>? measure = null)
    {
        List<(double Value, double Count)> wholes = [];
        foreach (var (inputs, targets) in batches)
        {
            using var scope = NewDisposeScope();
            var outputs = predict(inputs);
            var value = measure is null ? training.Loss(outputs, targets) : (measure(outputs, targets), 1);
            wholes.Add(Evaluation.Measured(value, bridge.batch_size((inputs, targets)), measure is null ? options.reduction : "mean"));
        }

        return Evaluation.Mean(wholes);
    }

    /// <summary>Write the whole state of the training run, in place of the old file as a whole.</summary>
    /// <remarks>
    /// That is the model, optimizers, schedulers, random states, gradients that wait for more batches, counts, and the
    /// position of the loader. Nothing changes, and nothing is drawn. Spec: R28.1, R28.4.
    /// </remarks>
    /// <param name="path">The file, which either language reads.</param>
    /// <param name="loader">Where the batches come from: a <see cref="Data.Loader{T}"/>, or another with a state.</param>
    /// <param name="extra">What to put beside it: a tree of dictionaries, lists, tuples, tensors and plain values.</param>
    /// <exception cref="ArgumentException">A state or an extra that a file cannot hold, by its place.</exception>
    /// <exception cref="IOException">The file cannot be written; the old one is whole.</exception>
    public void save(string path, IStateful? loader = null, object? extra = null) => TrainingCheckpoint.Save(training, path, loader, extra);

    /// <summary>Go on where the run was that either language saved, with every bit as it was.</summary>
    /// <remarks>Spec: R28.2, R28.3.</remarks>
    /// <param name="path">The file.</param>
    /// <param name="loader">On the same data, with the same options, where one was saved.</param>
    /// <returns>What was put beside the state.</returns>
    /// <exception cref="Checkpoint.CheckpointException">
    /// No such file of this version, or one of another trainer: all that differs is listed. Nothing changes.
    /// </exception>
    /// <exception cref="FileNotFoundException">No such file.</exception>
    public object? load(string path, IStateful? loader = null) => TrainingCheckpoint.Load(training, path, loader);

    /// <summary>Return the state of the model (an alias: the tensors are the model's own).</summary>
    /// <returns>Names and tensors, in PyTorch's order.</returns>
    public OrderedDictionary<string, Tensor> state_dict() => StateDict.Of(model);

    /// <summary>Load a state into every replica, strictly.</summary>
    /// <param name="state">Names and tensors.</param>
    /// <param name="prefix">Taken off every name first, such as <c>"module."</c>.</param>
    /// <exception cref="InvalidOperationException">Keys that are missing, unexpected, or of another shape or dtype.</exception>
    public void load_state_dict(IReadOnlyDictionary<string, Tensor> state, string prefix = "")
    {
        StateDict.Load(model, state, prefix);
        bridge.resync(replicas);
    }

    /// <summary>Dispose what the trainer made: the replicas but the first, and the optimizers that are not the caller's.</summary>
    public void Dispose()
    {
        foreach (var replica in replicas.Skip(1))
        {
            replica.Dispose();
        }

        foreach (var own in ownsOptimizers ? optimizers : [])
        {
            own.Dispose();
        }

        training.Dispose();
    }

    /// <summary>Take an optimizer that the caller made.</summary>
    private static Func<IEnumerable<Parameter>, optim.Optimizer> Given(optim.Optimizer optimizer, TrainerOptions? options)
        => options?.mode != "all"
            ? _ => optimizer
            : throw new ArgumentException("Trainer: expected a function that makes an optimizer, for mode all");
}
