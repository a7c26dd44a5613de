using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>Adds the gradients of several batches to those of one large batch.</summary>
/// <remarks>Gradients of half precision are added in float32 and rounded once. Spec: R7.5.</remarks>
internal sealed class Accumulator : IDisposable
{
    private readonly IReadOnlyList<Parameter> parameters;

    /// <summary>Start empty.</summary>
    /// <param name="parameters">Whose gradients; None counts as zero where another batch has one.</param>
    public Accumulator(IReadOnlyList<Parameter> parameters)
    {
        this.parameters = parameters;
        State = Empty();
    }

    /// <summary>How many batches have been added, the sum of their weights, and the sums.</summary>
    public (int Batches, double Total, Tensor?[] Sums) State { get; private set; }

    /// <summary>Add the present gradients times a weight, and drop them.</summary>
    public void Add(double weight)
    {
        using var mode = no_grad();
        var (batches, total, sums) = State;
        var added = parameters.Zip(sums, (parameter, held) => Plus(parameter.grad, weight, held)).ToArray();
        State = (batches + 1, total + weight, added);
        foreach (var parameter in parameters)
        {
            parameter.grad = null;
        }
    }

    /// <summary>Put the sums back as gradients, divided by the sum of the weights for a mean.</summary>
    public void Finish(bool mean)
    {
        using var mode = no_grad();
        var (_, total, sums) = State;
        var divisor = mean && total != 0 ? total : 1.0;
        foreach (var (parameter, held) in parameters.Zip(sums))
        {
            using var scope = NewDisposeScope();
            parameter.grad = held?.div(divisor).to(parameter.dtype);
        }

        State = Empty();
    }

    /// <summary>Go back to an earlier state, whose tensors have not been disposed.</summary>
    public void Restore((int Batches, double Total, Tensor?[] Sums) state) => State = state;

    /// <summary>Dispose the tensors of a state that are not those of the present one.</summary>
    public void Discard((int Batches, double Total, Tensor?[] Sums) state)
    {
        foreach (var tensor in state.Sums.Except(State.Sums))
        {
            tensor?.Dispose();
        }
    }

    /// <summary>Dispose the sums.</summary>
    public void Dispose()
    {
        foreach (var tensor in State.Sums)
        {
            tensor?.Dispose();
        }
    }

    private (int Batches, double Total, Tensor?[] Sums) Empty() => (0, 0, new Tensor?[parameters.Count]);

    /// <summary>Add a weighted gradient to what is held, as a fresh tensor: an undo keeps the old one.</summary>
    private static Tensor? Plus(Tensor? gradient, double weight, Tensor? held)
    {
        if (gradient is null)
        {
            return held;
        }

        using var scope = NewDisposeScope();
        var wide = bridge.widened(gradient);
        return (held is null ? wide * weight : bridge.plus(held, wide, weight)).DetachFromDisposeScope();
    }
}
