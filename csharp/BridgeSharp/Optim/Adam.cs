using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Adam in PyTorch's own formula and order of operations.</summary>
/// <remarks>
/// Options, groups and state are TorchSharp's; the update is PyTorch's: the first moment moves by <c>lerp_</c>, in
/// PyTorch 1.13 by <c>mul_</c> and <c>add_</c>; <c>zero_grad</c> leaves None.
/// Spec: R9.3. Source: torch/optim/adam.py
/// </remarks>
public sealed class Adam : TorchSharp.Modules.Adam
{
    private readonly bool lerp;

    /// <summary>Make an optimizer for parameters.</summary>
    /// <param name="parameters">What it updates.</param>
    /// <param name="lr">The learning rate.</param>
    /// <param name="beta1">The decay of the first moment.</param>
    /// <param name="beta2">The decay of the second moment.</param>
    /// <param name="eps">Added to the denominator.</param>
    /// <param name="weight_decay">The L2 penalty.</param>
    /// <param name="amsgrad">Divide by the largest second moment so far.</param>
    /// <param name="maximize">Climb instead of descend.</param>
    /// <param name="reference">Whose formula: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">An option out of range, or another reference.</exception>
    public Adam(
        IEnumerable<Parameter> parameters,
        double lr = 1e-3,
        double beta1 = 0.9,
        double beta2 = 0.999,
        double eps = 1e-8,
        double weight_decay = 0,
        bool amsgrad = false,
        bool maximize = false,
        string reference = "2.10")
        : base(parameters, lr, beta1, beta2, eps, weight_decay, amsgrad, maximize)
        => lerp = reference switch
        {
            "2.10" => true,
            "1.13" => false,
            _ => throw new ArgumentException($"Adam: expected reference 2.10 or 1.13, got {reference}"),
        };

    /// <inheritdoc/>
    public override Tensor step(Func<Tensor>? closure = null) => _step<ParamGroup>(Update, closure);

    /// <summary>Drop the gradients: they are None afterwards, as in PyTorch.</summary>
    public override void zero_grad() => Gradients.Drop(parameters());

    private void Update(ParamGroup group)
    {
        var options = group.Options;
        var (beta1, beta2) = (options.beta1!.Value, options.beta2!.Value);
        foreach (var parameter in group.Parameters)
        {
            var gradient = parameter.grad;
            if (gradient is null)
            {
                continue;
            }

            var state = (State)_state[parameter.Handle];
            state.step++;
            if (options.maximize!.Value)
            {
                gradient = -gradient;
            }

            if (options.weight_decay!.Value != 0)
            {
                gradient = gradient.add(parameter, alpha: options.weight_decay.Value);
            }

            MoveFirstMoment(state.exp_avg, gradient, beta1);
            state.exp_avg_sq.mul_(beta2).addcmul_(gradient, gradient, value: 1 - beta2);
            var correction1 = 1 - Math.Pow(beta1, state.step);
            var correction2 = 1 - Math.Pow(beta2, state.step);
            var root = lerp ? Math.Pow(correction2, 0.5) : Math.Sqrt(correction2);
            var denominator = (Largest(state, options.amsgrad!.Value).sqrt() / root).add_(options.eps!.Value);
            parameter.addcdiv_(state.exp_avg, denominator, value: -(options.LearningRate!.Value / correction1));
        }
    }

    /// <summary>Move the first moment towards the gradient; TorchSharp takes the weight of <c>lerp_</c> as a tensor only.</summary>
    private void MoveFirstMoment(Tensor moment, Tensor gradient, double beta1)
    {
        if (lerp)
        {
            moment.lerp_(gradient, tensor(1 - beta1, dtype: moment.dtype, device: moment.device));
        }
        else
        {
            moment.mul_(beta1).add_(gradient, alpha: 1 - beta1);
        }
    }

    private static Tensor Largest(State state, bool amsgrad)
    {
        if (!amsgrad)
        {
            return state.exp_avg_sq;
        }

        state.max_exp_avg_sq.copy_(maximum(state.max_exp_avg_sq, state.exp_avg_sq));
        return state.max_exp_avg_sq;
    }
}
