using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>One step of <see cref="LBFGS"/>, in PyTorch's order of operations.</summary>
/// <remarks>Numbers that PyTorch has as tensors of one value are so here. Source: torch/optim/lbfgs.py</remarks>
internal sealed class LBFGSStep(LBFGS.ParamGroup group, ParameterState state, Func<Tensor> closure, bool old)
{
    private readonly IReadOnlyList<Parameter> parameters = group.Parameters;
    private Tensor? direction = state.GetValueOrDefault("d") as Tensor;
    private Tensor? previousGradient = state.GetValueOrDefault("prev_flat_grad") as Tensor;
    private Real length = Real.Of(state.GetValueOrDefault("t"));
    private Real scale = Real.Of(state.GetValueOrDefault("H_diag"));
    private List<object?> directions = Items("old_dirs", state);
    private List<object?> steps = Items("old_stps", state);
    private List<object?> inverses = Items("ro", state);
    private Tensor gradient = null!;
    private double loss;
    private double previousLoss;
    private long evaluations = 1;

    /// <summary>Iterate until something says that it is enough.</summary>
    /// <returns>The loss of the first evaluation.</returns>
    public Tensor Run()
    {
        state.TryAdd("func_evals", 0L);
        state.TryAdd("n_iter", 0L);
        var first = Evaluate();
        Add("func_evals", 1);
        if (IsFlat())
        {
            return first;
        }

        for (long iteration = 1; iteration <= group.max_iter && Iterate(iteration); iteration++)
        {
        }

        Store();
        return first;
    }

    private static List<object?> Items(string name, ParameterState state)
    {
        if (state.GetValueOrDefault(name) is not List<object?> items)
        {
            items = [];
        }

        return items;
    }

    /// <summary>Do one iteration.</summary>
    /// <returns>Whether another may follow.</returns>
    private bool Iterate(long iteration)
    {
        var count = Add("n_iter", 1);
        Turn(count == 1);
        previousGradient = previousGradient is null ? gradient.clone() : previousGradient.copy_(gradient);
        previousLoss = loss;
        length = count == 1 ? Real.Min(1, 1 / (Real)gradient.abs().sum()) * group.lr : group.lr;
        Real slope = gradient.dot(direction!);
        if (slope > -group.tolerance_change)
        {
            return false;
        }

        var (calls, flat) = Move(slope, iteration);
        evaluations += calls;
        Add("func_evals", calls);
        return iteration != group.max_iter
            && evaluations < group.max_eval
            && !flat
            && !((Real)length.Times(direction!).abs().max() <= group.tolerance_change)
            && !(Math.Abs(loss - previousLoss) < group.tolerance_change);
    }

    /// <summary>Find the direction.</summary>
    private void Turn(bool first)
    {
        if (first)
        {
            direction = gradient.neg();
            (directions, steps, inverses, scale) = ([], [], [], 1);
            return;
        }

        Remember(gradient.sub(previousGradient!), length.Times(direction!));
        if (state.GetValueOrDefault("al") is not List<object?> factors)
        {
            state["al"] = factors = [.. Enumerable.Repeat<object?>(null, (int)group.history_size)];
        }

        var turned = gradient.neg();
        for (var index = directions.Count - 1; index >= 0; index--)
        {
            var factor = ((Tensor)steps[index]!).dot(turned) * (Tensor)inverses[index]!;
            factors[index] = factor;
            turned.add_((Tensor)directions[index]!, alpha: -factor.ToDouble());
        }

        direction = scale.Times(turned);
        for (var index = 0; index < directions.Count; index++)
        {
            var back = ((Tensor)directions[index]!).dot(direction) * (Tensor)inverses[index]!;
            direction.add_((Tensor)steps[index]!, alpha: ((Tensor)factors[index]! - back).ToDouble());
        }
    }

    /// <summary>Remember a change of the gradient and the step that made it, where they show curvature.</summary>
    private void Remember(Tensor change, Tensor step)
    {
        var product = change.dot(step);
        if (!((Real)product > 1e-10))
        {
            return;
        }

        if (directions.Count == group.history_size)
        {
            directions.RemoveAt(0);
            steps.RemoveAt(0);
            inverses.RemoveAt(0);
        }

        directions.Add(change);
        steps.Add(step);
        inverses.Add(1.0 / product);
        scale = product / change.dot(change);
    }

    /// <summary>Go along the direction.</summary>
    /// <returns>How often the closure was called, and whether the gradient is flat.</returns>
    private (long Calls, bool Flat) Move(Real slope, long iteration)
    {
        if (group.line_search_fn is null)
        {
            Shift(length);
            if (iteration == group.max_iter)
            {
                return (0, false);
            }

            Evaluate();
            return (1, IsFlat());
        }

        if (group.line_search_fn != "strong_wolfe")
        {
            throw new InvalidOperationException("only 'strong_wolfe' is supported");
        }

        var start = parameters.Select(parameter => parameter.clone()).ToList();
        var search = new StrongWolfe(
            at => Probe(at, start), direction!, new(0, loss, gradient.clone(), slope), old ? 25 : group.max_eval!.Value - evaluations);
        var found = search.Find(length);
        (loss, gradient, length) = (found.Loss, found.Gradient, found.Length);
        Shift(length);
        return (search.Evaluations, IsFlat());
    }

    /// <summary>Evaluate at a distance, and go back.</summary>
    private (double Loss, Tensor Gradient) Probe(Real at, List<Tensor> start)
    {
        Shift(at);
        var value = Call().ToDouble();
        var slope = Flat();
        foreach (var (parameter, kept) in parameters.Zip(start))
        {
            parameter.copy_(kept);
        }

        return (value, slope);
    }

    /// <summary>Evaluate here.</summary>
    private Tensor Evaluate()
    {
        var result = Call();
        loss = result.ToDouble();
        gradient = Flat();
        return result;
    }

    private Tensor Call()
    {
        using var tracked = enable_grad();
        return closure();
    }

    private bool IsFlat() => (Real)gradient.abs().max() <= group.tolerance_grad;

    private long Add(string name, long count)
    {
        var sum = Convert.ToInt64(state[name], null) + count;
        state[name] = sum;
        return sum;
    }

    /// <summary>Join the gradients of all parameters.</summary>
    private Tensor Flat() => cat([.. parameters.Select(parameter => parameter.grad switch
    {
        null => zeros(parameter.numel(), dtype: parameter.dtype, device: parameter.device),
        { is_sparse: true } sparse => sparse.to_dense().reshape(-1),
        var dense => dense.reshape(-1),
    })]);

    /// <summary>Move the parameters along the direction.</summary>
    private void Shift(Real by)
    {
        var offset = 0L;
        foreach (var parameter in parameters)
        {
            var count = parameter.numel();
            parameter.add_(direction!.narrow(0, offset, count).view_as(parameter), alpha: by.Value);
            offset += count;
        }
    }

    private void Store()
    {
        state["d"] = direction;
        state["t"] = length.Boxed;
        state["old_dirs"] = directions;
        state["old_stps"] = steps;
        state["ro"] = inverses;
        state["H_diag"] = scale.Tensor is { } tensor ? tensor : (object)(long)scale.Value;
        state["prev_flat_grad"] = previousGradient;
        state["prev_loss"] = previousLoss;
    }
}
