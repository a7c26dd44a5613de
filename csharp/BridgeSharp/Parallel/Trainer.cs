using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp;

/// <summary>Trains one model on several replicas so that it comes out as on one device.</summary>
/// <remarks>
/// Every replica's forward runs once a step, on its own shard; gradients are averaged by sample count, so that a mean
/// loss over uneven shards equals the mean loss over the whole batch. Spec: R8.1, R8.2, R8.3, R8.4.
/// </remarks>
public sealed class Trainer : IDisposable
{
    private readonly IReadOnlyList<nn.Module> replicas;

    /// <summary>Replicate the model.</summary>
    /// <param name="model">The model, on <c>devices[0]</c>; it stays replica 0 and the caller's to dispose.</param>
    /// <param name="optimizer">On the model's parameters; the caller's to dispose.</param>
    /// <param name="loss"><c>(outputs, targets)</c> to the mean loss over the samples, a scalar.</param>
    /// <param name="devices">One per replica; one CPU by default.</param>
    public Trainer(nn.Module model, optim.Optimizer optimizer, Func<Tensor, Tensor, Tensor> loss, IReadOnlyList<Device>? devices = null)
        : this(model, optimizer, (object outputs, object targets) => loss((Tensor)outputs, (Tensor)targets), devices)
    {
    }

    /// <summary>Replicate the model; its outputs and the targets may be trees.</summary>
    /// <param name="model">The model, on <c>devices[0]</c>; it stays replica 0 and the caller's to dispose.</param>
    /// <param name="optimizer">On the model's parameters; the caller's to dispose.</param>
    /// <param name="loss"><c>(outputs, targets)</c> to the mean loss over the samples, a scalar.</param>
    /// <param name="devices">One per replica; one CPU by default.</param>
    public Trainer(nn.Module model, optim.Optimizer optimizer, Func<object, object, Tensor> loss, IReadOnlyList<Device>? devices = null)
    {
        this.model = model;
        this.optimizer = optimizer;
        this.loss = loss;
        this.devices = devices ?? [CPU];
        Devices.Check("Trainer", this.devices);
        replicas = bridge.replicate(model, this.devices);
    }

    /// <summary>The model, replica 0.</summary>
    public nn.Module model { get; }

    /// <summary>The optimizer, on the model's parameters.</summary>
    public optim.Optimizer optimizer { get; }

    /// <summary>The loss of a shard.</summary>
    public Func<object, object, Tensor> loss { get; }

    /// <summary>One device per replica.</summary>
    public IReadOnlyList<Device> devices { get; }

    /// <summary>Train on one batch and return its mean loss.</summary>
    /// <remarks>Spec: R8.1, R8.2.</remarks>
    /// <param name="inputs">A tensor <c>(N, *)</c> or a tree; a tuple holds positional arguments.</param>
    /// <param name="targets">A tensor <c>(N, *)</c> or a tree.</param>
    /// <returns>The mean loss over the batch, before the update.</returns>
    /// <exception cref="ArgumentException">A batch that cannot be split.</exception>
    /// <exception cref="ReplicaException">At least one replica failed.</exception>
    public double step(object inputs, object targets)
    {
        using var scope = NewDisposeScope();
        var shards = bridge.scatter((inputs, targets), devices);
        var counts = shards.Select(shard => bridge.batch_size(shard)).ToList();
        foreach (var replica in replicas)
        {
            replica.zero_grad(set_to_none: true);
        }

        var passes = replicas.Select(replica => new Func<(object, object), double>(shard => ForwardBackward(replica, shard.Item1, shard.Item2)));
        var losses = bridge.parallel_apply([.. passes], shards, devices);
        bridge.average([.. replicas.Take(shards.Count)], [.. counts.Select(count => (double)count)], broadcast: false);
        bridge.step(replicas, optimizer);
        return Mean(losses, counts);
    }

    /// <summary>Train on every batch, <paramref name="epochs"/> times.</summary>
    /// <remarks>Spec: R8.3.</remarks>
    /// <param name="batches"><c>(inputs, targets)</c> pairs, iterated anew each epoch.</param>
    /// <param name="epochs">How often.</param>
    /// <param name="on_step">Called after each step with its number from 1 and its loss.</param>
    /// <returns>The mean loss of each epoch over its samples.</returns>
    public IReadOnlyList<double> fit(IEnumerable<(object inputs, object targets)> batches, int epochs = 1, Action<int, double>? on_step = null)
    {
        var history = new List<double>();
        var number = 0;
        for (var epoch = 0; epoch < epochs; epoch++)
        {
            List<double> losses = [];
            List<long> counts = [];
            foreach (var (inputs, targets) in batches)
            {
                losses.Add(step(inputs, targets));
                counts.Add(bridge.batch_size((inputs, targets)));
                number++;
                on_step?.Invoke(number, losses[^1]);
            }

            history.Add(Mean(losses, counts));
        }

        return history;
    }

    /// <summary>Run the model in evaluation mode, without gradients, and gather the outputs.</summary>
    /// <remarks>Spec: R8.4.</remarks>
    /// <param name="inputs">A tensor <c>(N, *)</c> or a tree; a tuple holds positional arguments.</param>
    /// <returns>The outputs <c>(N, *)</c> on <c>devices[0]</c>.</returns>
    public object predict(object inputs)
    {
        var modes = replicas.SelectMany(replica => replica.named_modules().Select(named => named.module).Prepend(replica))
            .Select(module => (module, module.training)).ToList();
        try
        {
            foreach (var replica in replicas)
            {
                replica.eval();
            }

            using var mode = no_grad();
            var outputs = bridge.parallel_apply(replicas, bridge.scatter(inputs, devices));
            return bridge.gather(outputs, devices[0]);
        }
        finally
        {
            foreach (var (module, training) in modes)
            {
                module.train(training);
            }
        }
    }

    /// <summary>Average a measure over all samples, in evaluation mode.</summary>
    /// <remarks>Spec: R8.4.</remarks>
    /// <param name="batches"><c>(inputs, targets)</c> pairs.</param>
    /// <param name="measure"><c>(outputs, targets)</c> to the mean over the batch; the loss by default.</param>
    /// <returns>The mean over all samples.</returns>
    public double evaluate(IEnumerable<(object inputs, object targets)> batches, Func<object, object, Tensor>? measure = null)
    {
        measure ??= loss;
        List<double> values = [];
        List<long> counts = [];
        foreach (var (inputs, targets) in batches)
        {
            using var scope = NewDisposeScope();
            values.Add(measure(predict(inputs), targets).to(float64).item<double>());
            counts.Add(bridge.batch_size((inputs, targets)));
        }

        return Mean(values, counts);
    }

    /// <summary>Return the state of the model (an alias: the tensors are the model's own).</summary>
    /// <returns>Names and tensors, in PyTorch's order.</returns>
    public OrderedDictionary<string, Tensor> state_dict() => StateDict.Of(model);

    /// <summary>Load a state into every replica, strictly.</summary>
    /// <param name="state">Names and tensors.</param>
    /// <exception cref="InvalidOperationException">Keys that are missing, unexpected or of another shape.</exception>
    public void load_state_dict(IReadOnlyDictionary<string, Tensor> state)
    {
        StateDict.Load(model, state);
        bridge.resync(replicas);
    }

    /// <summary>Dispose the replicas that the trainer made; the model and the optimizer are the caller's.</summary>
    public void Dispose()
    {
        foreach (var replica in replicas.Skip(1))
        {
            replica.Dispose();
        }
    }

    /// <summary>Run one replica on its shard and leave its gradients.</summary>
    private double ForwardBackward(nn.Module replica, object inputs, object targets)
    {
        var value = loss(Invoke.Call(replica, inputs), targets);
        value.backward();
        return value.to(float64).item<double>();
    }

    /// <summary>Average values by sample count, in order.</summary>
    private static double Mean(IReadOnlyList<double> values, List<long> counts)
    {
        if (counts.Count == 0)
        {
            throw new ArgumentException("Trainer: expected at least 1 batch, got 0");
        }

        var total = counts.Sum();
        var mean = 0.0;
        foreach (var (value, count) in values.Zip(counts))
        {
            mean += value * ((double)count / total);
        }

        return mean;
    }
}
