using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp;

public static partial class bridge
{
    /// <summary>Step the optimizer of replica 0 and resync the others (mode <c>master</c>).</summary>
    /// <remarks>Spec: R7.1, R7.2.</remarks>
    /// <param name="replicas">The modules, with averaged gradients.</param>
    /// <param name="optimizer">On replica 0's parameters.</param>
    /// <param name="buffers">Which buffers the replicas have then: <c>"first"</c>, <c>"mean"</c> or <c>"each"</c>.</param>
    /// <exception cref="ArgumentException">No replicas, or an optimizer on parameters of another model.</exception>
    public static void step(IReadOnlyList<nn.Module> replicas, torch.optim.Optimizer optimizer, string buffers = "first")
    {
        CheckReplicas(replicas);
        CheckOptimizer(optimizer, replicas[0], 0);
        optimizer.step();
        resync(replicas, buffers);
    }

    /// <summary>Step one optimizer per replica, each on its own copy of the averaged gradients (mode <c>all</c>).</summary>
    /// <remarks>Storage is never shared. Spec: R7.3.</remarks>
    /// <param name="replicas">The modules, with averaged gradients.</param>
    /// <param name="optimizer">One per replica, each on its replica's parameters.</param>
    /// <param name="buffers">Which buffers the replicas have then: <c>"first"</c>, <c>"mean"</c> or <c>"each"</c>.</param>
    /// <exception cref="ArgumentException">No replicas, another number of optimizers, or an optimizer on parameters of another model.</exception>
    public static void step(IReadOnlyList<nn.Module> replicas, IReadOnlyList<torch.optim.Optimizer> optimizer, string buffers = "first")
    {
        CheckReplicas(replicas);
        if (optimizer.Count != replicas.Count)
        {
            throw new ArgumentException($"step: expected {replicas.Count} optimizers, one per replica, got {optimizer.Count}");
        }

        for (var index = 0; index < replicas.Count; index++)
        {
            CheckOptimizer(optimizer[index], replicas[index], index);
        }

        foreach (var own in optimizer)
        {
            own.step();
        }

        if (buffers != "each" && replicas[0].buffers().Any())
        {
            resync(replicas, buffers);
        }
    }

    private static void CheckReplicas(IReadOnlyList<nn.Module> replicas)
    {
        if (replicas.Count == 0)
        {
            throw new ArgumentException("step: expected at least 1 replica, got 0");
        }
    }

    /// <summary>Refuse an optimizer whose parameters are not those of its replica.</summary>
    private static void CheckOptimizer(torch.optim.Optimizer optimizer, nn.Module replica, int index)
    {
        var own = replica.parameters().Select(parameter => parameter.Handle).ToHashSet();
        var held = optimizer.parameters().ToList();
        var strangers = held.Count(parameter => !own.Contains(parameter.Handle));
        if (strangers > 0)
        {
            throw new ArgumentException(
                $"step: expected an optimizer on the parameters of replica {index}, " +
                $"got {strangers} of {held.Count} parameters of another model");
        }
    }
}
