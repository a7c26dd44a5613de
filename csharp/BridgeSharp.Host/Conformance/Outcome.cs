using System.Collections;
using System.Runtime.CompilerServices;
using BridgeSharp.Parity;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Host.Conformance;

/// <summary>What a case gave in C#: tensors and texts, by the names of what they are.</summary>
internal sealed class Outcome
{
    /// <summary>The tensors.</summary>
    public OrderedDictionary<string, Tensor> Tensors { get; } = [];

    /// <summary>The texts.</summary>
    public OrderedDictionary<string, string> Texts { get; } = [];

    /// <summary>Describe the tensors of a state: names, dtypes and shapes, in order.</summary>
    public static string Describe(IEnumerable<KeyValuePair<string, Tensor>> state)
        => string.Join(", ", state.Select(entry => $"{entry.Key} {Digest.dtype_name(entry.Value.dtype)}[{string.Join(", ", entry.Value.shape)}]"));

    /// <summary>Add a tensor, a number, or each part of a tuple or a list.</summary>
    /// <returns>The tensors that were added, as they came.</returns>
    public IReadOnlyList<Tensor> Add(string name, object? value)
    {
        List<Tensor> flat = [.. Flatten(value)];
        for (var i = 0; i < flat.Count; i++)
        {
            Tensors[$"{name}.{i}"] = Keep(flat[i]);
        }

        return flat;
    }

    /// <summary>Add the gradients of a weighted sum of the outputs that have one.</summary>
    public void Differentiate(IEnumerable<Tensor> outputs, IEnumerable<KeyValuePair<string, Tensor>> leaves)
    {
        List<Tensor> losses = [.. outputs.Where(output => output.requires_grad).Select(Weighted)];
        if (losses.Count == 0)
        {
            return;
        }

        losses.Aggregate((sum, loss) => sum + loss).backward();
        foreach (var (name, leaf) in leaves)
        {
            if (leaf.grad is { } gradient)
            {
                Tensors[$"gradient.{name}"] = Keep(gradient);
            }
        }
    }

    /// <summary>Copy a tensor, out of every dispose scope.</summary>
    public static Tensor Keep(Tensor tensor)
    {
        using var mode = no_grad();
        var dense = tensor.is_sparse ? tensor.to_dense() : tensor;
        var real = dense.is_complex() ? view_as_real(dense.resolve_conj()) : dense;
        return real.detach().clone().contiguous().DetachFromDisposeScope();
    }

    /// <summary>Weigh an output by fixed eighths and sum it; the gradient at the output is the weights.</summary>
    private static Tensor Weighted(Tensor output)
    {
        var real = output.is_complex() ? view_as_real(output) : output;
        var places = arange(real.NumberOfElements, dtype: real.dtype).mul(5).remainder(11);
        return real.mul(places.sub(4).div(8).reshape(real.shape)).sum();
    }

    private static IEnumerable<Tensor> Flatten(object? value) => value switch
    {
        null => [],
        Tensor tensor => [tensor],
        bool flag => [tensor(flag)],
        long or int => [tensor(Convert.ToInt64(value, null), dtype: int64)],
        double or float => [tensor(Convert.ToDouble(value, null), dtype: float64)],
        Scalar scalar => [tensor(scalar.ToDouble(), dtype: float64)],
        ITuple tuple => Enumerable.Range(0, tuple.Length).SelectMany(i => Flatten(tuple[i])),
        IEnumerable list => list.Cast<object?>().SelectMany(Flatten),
        _ => throw new ArgumentException($"conformance: expected tensors or numbers as the result, got {value.GetType().Name}"),
    };
}
