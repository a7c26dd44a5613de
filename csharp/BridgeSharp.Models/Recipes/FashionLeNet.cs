using System.Diagnostics;
using BridgeSharp.Checkpoint;
using BridgeSharp.Data;
using BridgeSharp.Optim;
using BridgeSharp.Parallel;
using BridgeSharp.Parity;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Models.Recipes;

/// <summary>What one step of a job left: its number from 1, the loss, the batch and the time.</summary>
/// <param name="number">The number of the step, from 1.</param>
/// <param name="loss">The mean loss of the batch.</param>
/// <param name="samples">The number of samples.</param>
/// <param name="batch">The digest of the batch.</param>
/// <param name="seconds">How long the step took.</param>
public sealed record StepResult(long number, double loss, long samples, string batch, double seconds);

/// <summary>Trains LeNet on Fashion-MNIST, one step at a call.</summary>
/// <remarks>Spec: R14.2, R14.3, R14.4.</remarks>
public sealed class FashionLeNet : IDisposable
{
    private const long EvaluationBatch = 500;

    private readonly Options options;
    private readonly FashionMnist train, test;
    private readonly LeNet model;
    private readonly optim.Optimizer optimizer;
    private readonly Loader<(Tensor images, Tensor labels)> loader;
    private IEnumerator<(Tensor images, Tensor labels)> batches;

    /// <summary>Read the data, seed and build the model, and replicate it.</summary>
    /// <param name="options">What to train, and how long.</param>
    /// <exception cref="FileNotFoundException">The data set is missing; the message says how to get it.</exception>
    /// <exception cref="IdxException">A damaged file.</exception>
    public FashionLeNet(Options options)
    {
        this.options = options.Checked();
        set_num_threads(options.threads);
        var devices = Devices.Read("options", options.devices);
        train = new FashionMnist(options.data, train: true, options.scalar_type);
        test = new FashionMnist(options.data, train: false, options.scalar_type);
        random.manual_seed(options.seed);
        model = new LeNet().to(devices[0], options.scalar_type);
        optimizer = Optimizers.create(options.optimizer, model.parameters(), options.optimizer_options, options.reference);
        trainer = new Trainer(model, optimizer, (outputs, targets) => nn.functional.cross_entropy(outputs, targets), devices);
        loader = new Loader<(Tensor images, Tensor labels)>(train, options.batch, seed: options.seed);
        batches = Epochs();
    }

    /// <summary>The trainer of the model.</summary>
    public Trainer trainer { get; }

    /// <summary>Count the steps of an epoch; the last may have a smaller batch.</summary>
    public long steps_per_epoch => loader.Count;

    /// <summary>Count the steps of the whole job.</summary>
    public long planned_steps => Math.Min(options.epochs * steps_per_epoch, options.steps ?? long.MaxValue);

    /// <summary>Train on the next batch; after a failure the next call takes the same one.</summary>
    /// <returns>What the step left.</returns>
    public StepResult step()
    {
        var start = Stopwatch.GetTimestamp();
        using var scope = NewDisposeScope();
        var state = loader.state_dict();
        Tensor images, labels;
        double loss;
        try
        {
            batches.MoveNext();
            (images, labels) = batches.Current;
            loss = trainer.step(images, labels);
        }
        catch
        {
            batches.Dispose();
            loader.load_state_dict(state);
            batches = Epochs();
            throw;
        }

        var seconds = Stopwatch.GetElapsedTime(start).TotalSeconds;
        var batch = Digest.digest([new("images", images), new("labels", labels)]);
        return new StepResult(trainer.steps, loss, labels.size(0), batch, seconds);
    }

    /// <summary>Measure the accuracy on the first <paramref name="count"/> test samples, or on all.</summary>
    /// <param name="count">How many samples; null takes all.</param>
    /// <returns>The share of samples whose largest output is at the target.</returns>
    public double evaluate(long? count = null)
    {
        var total = Math.Min(count ?? test.Count, test.Count);
        return trainer.evaluate(Batches(), accuracy);

        IEnumerable<(object, object)> Batches()
        {
            for (long start = 0; start < total; start += EvaluationBatch)
            {
                using var row = arange(start, Math.Min(start + EvaluationBatch, total));
                var (images, labels) = test.batch(row);
                yield return (images, labels);
                images.Dispose();
                labels.Dispose();
            }
        }
    }

    /// <summary>Write the whole state of the job, in place of the old file as a whole.</summary>
    /// <remarks>Spec: R28.4.</remarks>
    /// <param name="path">The file, which either language reads.</param>
    /// <exception cref="IOException">The file cannot be written; the old one is whole.</exception>
    public void save(string path) => trainer.save(path, loader);

    /// <summary>Go on where the job was that either language saved.</summary>
    /// <remarks>Spec: R28.2.</remarks>
    /// <param name="path">The file.</param>
    /// <exception cref="CheckpointException">No such file of this version, or one of another job; nothing changes.</exception>
    /// <exception cref="FileNotFoundException">No such file.</exception>
    public void load(string path)
    {
        trainer.load(path, loader);
        batches.Dispose();
        batches = Epochs();
    }

    /// <summary>Digest the model's state.</summary>
    /// <returns>A SHA-256.</returns>
    public string digest() => Digest.digest(trainer.state_dict());

    /// <summary>Dispose the data, the trainer and the model.</summary>
    public void Dispose()
    {
        batches.Dispose();
        trainer.Dispose();
        optimizer.Dispose();
        model.Dispose();
        test.Dispose();
        train.Dispose();
    }

    /// <summary>Give the batches from where the loader is, epoch after epoch.</summary>
    private IEnumerator<(Tensor images, Tensor labels)> Epochs()
        => Enumerable.Repeat(loader, int.MaxValue).SelectMany(epoch => epoch).GetEnumerator();

    /// <summary>Measure the share of samples whose largest output is at the target.</summary>
    private static Tensor accuracy(object outputs, object targets)
        => ((Tensor)outputs).argmax(1).eq((Tensor)targets).to(float64).mean();
}
