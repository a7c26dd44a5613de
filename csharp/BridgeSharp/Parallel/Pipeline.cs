using System.Runtime.CompilerServices;
using BridgeSharp.Parallel;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp;

/// <summary>Runs a batch in micro-batches through the stages of a model, each on a device of its own.</summary>
/// <remarks>
/// At tick t stage s has micro-batch t - s, so that all stages have work once the first micro-batch reached the last. A
/// thread starts them in this order: GPUs run at once, and the results are the same bits, run after run. The backward of
/// a loss on the gathered outputs flows through all stages; until then the values of all micro-batches are kept. Batch
/// normalization sees a micro-batch. Disposing it disposes the stages.
/// Spec: R24.1, R24.2, R24.3. Source: Huang et al. 2019, https://arxiv.org/abs/1811.06965
/// </remarks>
/// <typeparam name="T">What the first stage takes: a tuple for several arguments.</typeparam>
/// <typeparam name="TResult">What the last stage returns.</typeparam>
public sealed class Pipeline<T, TResult> : nn.Module<T, TResult>
    where T : notnull
    where TResult : notnull
{
    /// <summary>Move the stages to their devices.</summary>
    /// <param name="stages">
    /// Modules; a tuple that one returns is the arguments of the next. They are moved to their devices.
    /// </param>
    /// <param name="devices">One per stage.</param>
    /// <param name="micro_batches">Into how many parts a batch is split, in the sizes of <c>torch.chunk</c>.</param>
    /// <exception cref="ArgumentException">
    /// No device, another number of stages, no micro-batch, or a stage that synchronizes its replicas.
    /// </exception>
    public Pipeline(IReadOnlyList<nn.Module> stages, IReadOnlyList<Device> devices, int micro_batches)
        : base("Pipeline")
    {
        Devices.Check("Pipeline", devices);
        this.devices = devices;
        this.micro_batches = micro_batches;
        if (stages.Count != devices.Count)
        {
            throw new ArgumentException($"Pipeline: expected {devices.Count} stages, one per device, got {stages.Count}");
        }

        if (micro_batches < 1)
        {
            throw new ArgumentException($"Pipeline: expected at least 1 micro-batch, got {micro_batches}");
        }

        foreach (var (index, stage) in stages.Index())
        {
            if (SyncBatchNorm.synchronizes(stage))
            {
                throw new ArgumentException($"Pipeline: expected stages that do not synchronize, got stage {index}");
            }
        }

        this.stages = nn.ModuleList([.. stages.Zip(devices, (stage, device) => stage.to(device))]);
        register_module(nameof(stages), this.stages);
    }

    /// <summary>The stages, each on its device.</summary>
    public ModuleList<nn.Module> stages { get; }

    /// <summary>One device per stage.</summary>
    public IReadOnlyList<Device> devices { get; }

    /// <summary>Into how many parts a batch is split.</summary>
    public int micro_batches { get; }

    /// <summary>Run a batch through all stages and gather the outputs.</summary>
    /// <param name="input">The argument of the first stage, or a tuple of its arguments: trees of tensors <c>(N, *)</c>.</param>
    /// <returns>The outputs <c>(N, *)</c> of the last stage, on its device.</returns>
    /// <exception cref="ArgumentException">A batch that cannot be split.</exception>
    /// <exception cref="ReplicaException">At least one stage failed; it is named by its index.</exception>
    public override TResult forward(T input)
    {
        using var scope = NewDisposeScope();
        object inputs = input is ITuple ? input : ValueTuple.Create<object>(input);
        var parts = bridge.scatter(inputs, [.. Enumerable.Repeat(devices[0], micro_batches)]).ToArray();
        for (var tick = 0; tick < parts.Length + stages.Count - 1; tick++)
        {
            var (first, last) = (Math.Max(0, tick - parts.Length + 1), Math.Min(tick, stages.Count - 1));
            var places = Enumerable.Range(first, last - first + 1).Select(stage => tick - stage).ToList();
            foreach (var (place, output) in places.Zip(Run(first, [.. places.Select(place => parts[place])])))
            {
                parts[place] = output;
            }
        }

        return (TResult)Tree.MoveToOuterScope(bridge.gather(parts, devices[^1]))!;
    }

    /// <summary>Run a micro-batch in each of the stages from <paramref name="first"/> on.</summary>
    private IReadOnlyList<object> Run(int first, IReadOnlyList<object> parts)
    {
        var active = devices.Skip(first).Take(parts.Count).ToList();
        var shards = parts.Zip(active, (part, device) => Tree.Move(part, device)!);
        try
        {
            return bridge.parallel_apply(
                [.. stages.Skip(first).Take(parts.Count)], [.. shards], devices: active, workers: 1);
        }
        catch (ReplicaException error)
        {
            var failures = error.Failures.Select(failure => failure with { Replica = first + failure.Replica });
            throw new ReplicaException([.. failures], parts.Count);
        }
    }
}
