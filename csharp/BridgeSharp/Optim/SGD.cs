using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Stochastic gradient descent in PyTorch's order of operations.</summary>
/// <remarks>
/// Options, groups and state are TorchSharp's; the update is PyTorch's: <c>maximize</c> turns the gradient before weight
/// decay is added, and <c>zero_grad</c> leaves None, so that momentum never moves a parameter that had no gradient.
/// Spec: R9.2. Source: torch/optim/sgd.py
/// </remarks>
public sealed class SGD : TorchSharp.Modules.SGD
{
    /// <summary>Make an optimizer for parameters.</summary>
    /// <param name="parameters">What it updates.</param>
    /// <param name="lr">The learning rate.</param>
    /// <param name="momentum">The share of the last update that is kept.</param>
    /// <param name="dampening">What momentum takes off the gradient.</param>
    /// <param name="weight_decay">The L2 penalty.</param>
    /// <param name="nesterov">Look ahead along the momentum.</param>
    /// <param name="maximize">Climb instead of descend.</param>
    /// <exception cref="ArgumentException">An option out of range.</exception>
    public SGD(
        IEnumerable<Parameter> parameters,
        double lr = 1e-3,
        double momentum = 0,
        double dampening = 0,
        double weight_decay = 0,
        bool nesterov = false,
        bool maximize = false)
        : base(parameters, lr, momentum, dampening, weight_decay, nesterov, maximize)
    {
    }

    /// <inheritdoc/>
    public override Tensor step(Func<Tensor>? closure = null) => _step<ParamGroup>(Update, closure);

    /// <summary>Drop the gradients: they are None afterwards, as in PyTorch.</summary>
    public override void zero_grad() => Gradients.Drop(parameters());

    private void Update(ParamGroup group)
    {
        var options = group.Options;
        var (momentum, decay) = (options.momentum!.Value, options.weight_decay!.Value);
        foreach (var parameter in group.Parameters)
        {
            var gradient = parameter.grad;
            if (gradient is null)
            {
                continue;
            }

            if (options.maximize!.Value)
            {
                gradient = -gradient;
            }

            if (decay != 0)
            {
                gradient = gradient.add(parameter, alpha: decay);
            }

            if (momentum != 0)
            {
                var state = (State)_state[parameter.Handle];
                if (state.momentum_buffer is null)
                {
                    state.momentum_buffer = gradient.detach().clone().DetachFromDisposeScope();
                }
                else
                {
                    state.momentum_buffer.mul_(momentum).add_(gradient, alpha: 1 - options.dampening!.Value);
                }

                gradient = options.nesterov!.Value
                    ? gradient.add(state.momentum_buffer, alpha: momentum)
                    : state.momentum_buffer;
            }

            parameter.add_(gradient, alpha: -options.LearningRate!.Value);
        }
    }
}
