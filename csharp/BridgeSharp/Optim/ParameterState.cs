using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>What an optimizer keeps of one parameter, under PyTorch's names and in its order.</summary>
internal sealed class ParameterState : OrderedDictionary<string, object?>, IDisposable
{
    /// <summary>Read a tensor.</summary>
    public Tensor Tensor(string name) => (Tensor)this[name]!;

    /// <summary>Count a step.</summary>
    /// <returns>The number of steps, this one included.</returns>
    public double Step()
    {
        if (this["step"] is Tensor step)
        {
            return step.add_(1).ToDouble();
        }

        var count = Convert.ToInt64(this["step"], null) + 1;
        this["step"] = count;
        return count;
    }

    /// <summary>List the tensors of an entry.</summary>
    public static IEnumerable<Tensor> Tensors(object? value) => value switch
    {
        Tensor tensor => [tensor],
        IEnumerable<object?> items => items.SelectMany(Tensors),
        _ => [],
    };

    /// <summary>Dispose the tensors.</summary>
    public void Dispose()
    {
        foreach (var tensor in Values.SelectMany(Tensors))
        {
            tensor.Dispose();
        }
    }
}
