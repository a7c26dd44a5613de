using BridgeSharp.Parallel;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp;

public static partial class bridge
{
    /// <summary>Reduce the gradients of the replicas in replica order 0, 1, 2 and so on.</summary>
    /// <remarks>
    /// <c>weighted</c> is the mean by sample count, equal to the mean loss of the undivided batch; without weights
    /// every replica counts the same. <c>sum</c> adds, <c>mean</c> divides by the number of replicas. A gradient
    /// that is None on every replica stays None; one that is None on some counts as zero there.
    /// Spec: R5.1, R5.2, R5.3, R5.4, R5.5.
    /// </remarks>
    /// <param name="replicas">Modules with the same parameters.</param>
    /// <param name="weights">Samples (or tokens) per replica, for <c>weighted</c>.</param>
    /// <param name="reduction"><c>"weighted"</c>, <c>"sum"</c> or <c>"mean"</c>.</param>
    /// <param name="broadcast">
    /// Give every replica a copy of the result of its own; otherwise only replica 0 keeps it and the other
    /// gradients are freed.
    /// </param>
    /// <exception cref="ArgumentException">No replicas, bad weights, or replicas with different parameters.</exception>
    public static void average(
        IReadOnlyList<nn.Module> replicas, IReadOnlyList<double>? weights = null, string reduction = "weighted", bool broadcast = true)
    {
        var shares = Shares(replicas.Count, weights, reduction);
        var parameters = replicas.Select(replica => replica.named_parameters().ToList()).ToList();
        var names = Text.Names(parameters[0].Select(parameter => parameter.name));
        for (var index = 0; index < replicas.Count; index++)
        {
            var own = Text.Names(parameters[index].Select(parameter => parameter.name));
            if (own != names)
            {
                throw new ArgumentException($"average: expected replica {index} to have parameters {names}, got {own}");
            }
        }

        using var mode = no_grad();
        for (var i = 0; i < parameters[0].Count; i++)
        {
            Reduce([.. parameters.Select(own => own[i].parameter)], shares, broadcast);
        }
    }

    /// <summary>Turn weights into the factor of each replica.</summary>
    private static double[] Shares(int count, IReadOnlyList<double>? weights, string reduction)
    {
        if (count == 0)
        {
            throw new ArgumentException("average: expected at least 1 replica, got 0");
        }

        if (reduction is not ("weighted" or "sum" or "mean"))
        {
            throw new ArgumentException($"average: expected reduction weighted, sum or mean, got {reduction}");
        }

        if (weights is null)
        {
            return [.. Enumerable.Repeat(reduction == "sum" ? 1.0 : 1.0 / count, count)];
        }

        if (reduction != "weighted")
        {
            throw new ArgumentException($"average: expected no weights with reduction {reduction}, got {weights.Count}");
        }

        if (weights.Count != count)
        {
            throw new ArgumentException($"average: expected {count} weights, one per replica, got {weights.Count}");
        }

        for (var index = 0; index < count; index++)
        {
            if (!(weights[index] >= 0 && double.IsFinite(weights[index])))
            {
                var expected = $"weight {index} to be finite and not negative";
                throw new ArgumentException($"average: expected {expected}, got {Text.Number(weights[index])}");
            }
        }

        var total = weights.Sum();
        return total > 0
            ? [.. weights.Select(weight => weight / total)]
            : throw new ArgumentException("average: expected a weight above 0, got only zeros");
    }

    /// <summary>Reduce one parameter's gradients onto replica 0, and hand the result on or free the rest.</summary>
    private static void Reduce(Parameter[] parameters, double[] shares, bool broadcast)
    {
        using var scope = NewDisposeScope();
        var first = parameters[0];
        Tensor? total = null;
        foreach (var (parameter, share) in parameters.Zip(shares))
        {
            var gradient = parameter.grad?.to(first.device);
            if (gradient is not null)
            {
                total = total is null ? gradient * share : total.add_(gradient, alpha: share);
            }
        }

        foreach (var parameter in parameters)
        {
            var keep = total is not null && (broadcast || ReferenceEquals(parameter, first));
            if (!keep || total is null)
            {
                parameter.grad = null;
            }
            else
            {
                parameter.grad = ReferenceEquals(parameter, first) ? total : total.to(parameter.device, copy: true);
            }
        }
    }
}
