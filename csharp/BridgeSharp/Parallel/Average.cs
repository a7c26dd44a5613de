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
    /// that is None on every replica stays None; one that is None on some counts as zero there. Gradients of half
    /// precision are added in float32 and rounded once. Sparse gradients stay sparse.
    /// Spec: R5.1, R5.2, R5.3, R5.4, R5.5, R5.6.
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
        var parameters = replicas.Select(replica => Registered.Named(replica).ToList()).ToList();
        var expected = Signature(parameters[0]);
        for (var index = 0; index < replicas.Count; index++)
        {
            var own = Signature(parameters[index]);
            if (own != expected)
            {
                throw new ArgumentException($"average: expected replica {index} to have parameters {expected}, got {own}");
            }
        }

        using var mode = no_grad();
        for (var i = 0; i < parameters[0].Count; i++)
        {
            Reduce([.. parameters.Select(own => own[i].Parameter)], shares);
        }

        if (broadcast)
        {
            broadcast_gradients(replicas);
        }
    }

    /// <summary>Give every replica a copy of replica 0's gradients, with storage of its own.</summary>
    /// <remarks>Spec: R5.6.</remarks>
    /// <param name="replicas">Modules with the same parameters.</param>
    internal static void broadcast_gradients(IReadOnlyList<nn.Module> replicas)
    {
        using var scope = NewDisposeScope();
        using var mode = no_grad();
        var gradients = Registered.Parameters(replicas[0]).Select(parameter => parameter.grad).ToList();
        foreach (var replica in replicas.Skip(1))
        {
            foreach (var (parameter, gradient) in Registered.Parameters(replica).Zip(gradients))
            {
                parameter.grad = gradient?.to(parameter.device, copy: true);
            }
        }
    }

    /// <summary>List the names and shapes of a module's parameters.</summary>
    private static string Signature(IEnumerable<(string Name, Parameter Value)> parameters)
        => Text.Names(parameters.Select(parameter => $"{parameter.Name} {Text.Shape(parameter.Value.shape)}"));

    /// <summary>Add a share of a gradient, as a fresh tensor; a sparse sum becomes dense for a dense one.</summary>
    internal static Tensor plus(Tensor total, Tensor gradient, double share)
        => (total.is_sparse && !gradient.is_sparse ? total.to_dense() : total).add(gradient, alpha: share);

    /// <summary>Widen a gradient of half precision, so that its sum is rounded once.</summary>
    internal static Tensor widened(Tensor gradient)
        => gradient.dtype is ScalarType.Float16 or ScalarType.BFloat16 ? gradient.to(float32) : gradient;

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

    /// <summary>Reduce one parameter's gradients onto replica 0, and free the others.</summary>
    private static void Reduce(Parameter[] parameters, double[] shares)
    {
        using var scope = NewDisposeScope();
        var first = parameters[0];
        Tensor? total = null;
        foreach (var (parameter, share) in parameters.Zip(shares))
        {
            if (parameter.grad is { } own)
            {
                // That of weight 0 may be NaN: that of a mean over nothing.
                var gradient = widened(share == 0 ? zeros_like(own) : own).to(first.device);
                total = total is null ? gradient * share : plus(total, gradient, share);
                parameter.grad = null;
            }
        }

        first.grad = total?.to(first.dtype);
    }
}
