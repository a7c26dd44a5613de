using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp;

public static partial class bridge
{
    /// <summary>Step the optimizer of replica 0 and resync the others (mode <c>master</c>).</summary>
    /// <remarks>Spec: R7.1, R7.2.</remarks>
    /// <param name="replicas">The modules, with averaged gradients.</param>
    /// <param name="optimizer">On replica 0's parameters.</param>
    /// <exception cref="ArgumentException">An optimizer on parameters of another model.</exception>
    public static void step(IReadOnlyList<nn.Module> replicas, optim.Optimizer optimizer)
    {
        CheckOptimizer(optimizer, replicas[0], 0);
        optimizer.step();
        resync(replicas);
    }

    /// <summary>Step one optimizer per replica, each on its own copy of the averaged gradients (mode <c>all</c>).</summary>
    /// <remarks>Storage is never shared. Spec: R7.3.</remarks>
    /// <param name="replicas">The modules, with averaged gradients.</param>
    /// <param name="optimizer">One per replica, each on its replica's parameters.</param>
    /// <exception cref="ArgumentException">Another number of optimizers, or an optimizer on parameters of another model.</exception>
    public static void step(IReadOnlyList<nn.Module> replicas, IReadOnlyList<optim.Optimizer> optimizer)
    {
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
    }

    /// <summary>Refuse an optimizer whose parameters are not those of its replica.</summary>
    private static void CheckOptimizer(optim.Optimizer optimizer, nn.Module replica, int index)
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
