using BridgeSharp.Parallel;
using TorchSharp;
using TorchSharp.Utils;
using static TorchSharp.torch;

namespace BridgeSharp;

/// <summary>Runs a module on several replicas as if it were one, on CPU devices too.</summary>
/// <remarks>
/// The forward scatters the batch, runs the replicas and gathers the outputs on one device; the backward of a loss of
/// these outputs adds the gradients of all replicas, in replica order, to those of the module. So a training loop stays
/// as it is. Batch normalization sees its shard, and the module keeps the statistics of replica 0. Disposing it
/// disposes the module. Spec: R25.1, R25.2, R25.3. Source: torch/nn/parallel/data_parallel.py
/// </remarks>
public sealed class DataParallel<T, TResult> : nn.Module<T, TResult>
    where T : notnull
    where TResult : notnull
{
    [ComponentName(Name = "module")]
    private readonly nn.Module<T, TResult> inner;

    private readonly IReadOnlyList<nn.Module> replicas;
    private readonly RandomStates states;

    // In an array: TorchSharp takes every field that is a tensor for a buffer.
    private readonly Tensor[] anchor;

    private bool? drew;

    /// <summary>Replicate the module.</summary>
    /// <param name="module">The model, on <c>devices[0]</c>; its parameters are those to optimize.</param>
    /// <param name="devices">One per replica.</param>
    /// <param name="output_device">Where the outputs are gathered; <c>devices[0]</c> by default.</param>
    /// <param name="dim">The dimension that counts samples.</param>
    /// <param name="factory">Makes a fresh module, for one that cannot be copied, as in <see cref="bridge.replicate"/>.</param>
    public DataParallel(nn.Module<T, TResult> module, IReadOnlyList<Device> devices, Device? output_device = null, int dim = 0, Func<nn.Module>? factory = null)
        : base("DataParallel")
    {
        Devices.Check("DataParallel", devices);
        inner = module;
        this.devices = devices;
        this.output_device = output_device ?? devices[0];
        this.dim = dim;
        replicas = bridge.replicate<nn.Module>(module, devices, factory);
        states = new RandomStates(devices);
        anchor = [empty(0, requires_grad: true).DetachFromDisposeScope()];
        RegisterComponents();
    }

    /// <summary>The model, replica 0.</summary>
    public nn.Module<T, TResult> module => inner;

    /// <summary>One device per replica.</summary>
    public IReadOnlyList<Device> devices { get; }

    /// <summary>Where the outputs are gathered.</summary>
    public Device output_device { get; }

    /// <summary>The dimension that counts samples.</summary>
    public int dim { get; }

    /// <summary>
    /// What the last backward threw, if it did: libtorch cannot carry it, so the caller of <c>backward</c> gets an error about
    /// an invalid gradient of <c>CSharpNode</c> instead.
    /// </summary>
    public Exception? failure { get; private set; }

    /// <summary>Run the replicas on their shards and gather their outputs.</summary>
    /// <param name="input">The module's argument, a tree of tensors <c>(N, *)</c>.</param>
    /// <returns>The outputs <c>(N, *)</c> on <see cref="output_device"/>.</returns>
    /// <exception cref="ArgumentException">A batch that cannot be split.</exception>
    /// <exception cref="ReplicaException">At least one replica failed.</exception>
    public override TResult forward(T input)
    {
        if (!is_grad_enabled())
        {
            return Join(Run(input));
        }

        var given = Leaves.Of(input);
        var leaves = given.Select(tensor => tensor.detach().requires_grad_(tensor.requires_grad)).ToList();
        var joined = Join(Run((T)Leaves.Put(input, leaves)!));
        failure = null;
        var held = new Held(replicas, leaves, Leaves.Of(joined), error => failure = error);
        var tied = Backward.apply([held, anchor[0], .. given]);
        return (TResult)Leaves.Put(joined, tied)!;
    }

    /// <inheritdoc/>
    protected override void Dispose(bool disposing)
    {
        if (disposing)
        {
            foreach (var replica in replicas.Skip(1))
            {
                replica.Dispose();
            }

            states.Dispose();
            anchor[0].Dispose();
        }

        base.Dispose(disposing);
    }

    /// <summary>Bring the replicas up to date and run them: in turn where the module draws, or may.</summary>
    private IReadOnlyList<object> Run(T input)
    {
        Follow.follow(replicas);
        var shards = bridge.scatter((object)input, devices, dim);
        var known = RandomStates.draws(module);
        var in_turn = known || drew != false;
        using var kept = NewDisposeScope();
        var (random, buffers) = (states.snapshot(), new BufferSnapshot(replicas));
        Array.ForEach(random, state => kept.Attach(state));
        var outputs = bridge.parallel_apply(replicas, shards, devices: devices, states: in_turn ? states : null);
        var moved = states.moved(random);
        drew = (moved && !known) || drew == true;
        if (moved && !in_turn && shards.Count > 1)
        {
            // It drew for the first time while its replicas ran at once: undone; now in turn.
            states.restore(random);
            buffers.Restore();
            outputs = Run(input);
        }

        return [.. outputs.Select(output => Tree.MoveToOuterScope(output)!)];
    }

    /// <summary>Gather the outputs.</summary>
    private TResult Join(IReadOnlyList<object> outputs) => (TResult)bridge.gather(outputs, output_device, dim);

    /// <summary>What the backward of one forward needs.</summary>
    private sealed record Held(IReadOnlyList<nn.Module> Replicas, IReadOnlyList<Tensor> Leaves, IReadOnlyList<Tensor> Outputs, Action<Exception> Fail);

    /// <summary>Ties the gathered outputs to the replicas, and reduces their gradients in replica order.</summary>
    private sealed class Backward : autograd.MultiTensorFunction<Backward>
    {
        /// <inheritdoc/>
        public override string Name => "DataParallelBackward";

        /// <summary>Return the outputs, cut off from the graphs of the replicas.</summary>
        public override List<Tensor> forward(autograd.AutogradContext ctx, params object[] vars)
        {
            var held = (Held)vars[0];
            ctx.save_data("held", held);
            foreach (var tensor in held.Outputs.Concat(held.Leaves))
            {
                tensor.DetachFromDisposeScope();
            }

            var outputs = held.Outputs.Select(output => output.detach()).ToList();
            ctx.mark_non_differentiable([.. outputs.Where(output => !output.is_floating_point())]);
            return outputs;
        }

        /// <summary>Differentiate the replicas' graphs, and add their gradients to the module's.</summary>
        /// <remarks>An exception would end the process on its way through libtorch: a gradient that cannot be makes libtorch fail.</remarks>
        public override List<Tensor> backward(autograd.AutogradContext ctx, List<Tensor> grad_outputs)
        {
            var held = (Held)ctx.get_data("held");
            try
            {
                Differentiate(held, grad_outputs);
                return [null!, null!, .. held.Leaves.Select(leaf => leaf.grad!)];
            }
#pragma warning disable CA1031 // Kept for the caller.
            catch (Exception error)
#pragma warning restore CA1031
            {
                held.Fail(error);
                return [null!, ones(1), .. held.Leaves.Select(_ => (Tensor)null!)];
            }
        }

        private static void Differentiate(Held held, List<Tensor> grad_outputs)
        {
            if (is_grad_enabled())
            {
                throw new InvalidOperationException("DataParallel: expected a backward without create_graph, got it on");
            }

            foreach (var replica in held.Replicas.Skip(1))
            {
                replica.zero_grad(set_to_none: true);
            }

            var pairs = held.Outputs.Zip(grad_outputs).Where(pair => pair.First.requires_grad).ToList();
            using (enable_grad())
            {
                autograd.backward([.. pairs.Select(pair => pair.First)], [.. pairs.Select(pair => pair.Second)]);
            }

            bridge.average(held.Replicas, reduction: "sum", broadcast: false);
        }
    }
}
