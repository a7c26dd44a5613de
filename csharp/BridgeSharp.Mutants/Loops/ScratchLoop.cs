using TorchSharp;
using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Mutants;

/// <summary>A loop without an optimizer, around the MLP of plain tensors.</summary>
public sealed class ScratchLoop : Loop
{
    private const double Rate = 0.1;
    private readonly string fault;

    public ScratchLoop(string fault = "")
    {
        this.fault = fault;
        replicas = [new TensorMLP(fault)];
    }

    public override double step(Tensor inputs, Tensor targets)
    {
        using var scope = NewDisposeScope();
        var loss = cross_entropy(model.forward(inputs), targets);
        loss.backward();
        using (no_grad())
        {
            foreach (var weight in state.Values)
            {
                if (weight.grad is null)
                {
                    continue;
                }

                weight.sub_(weight.grad * Rate);
                if (fault != "gradients-kept")
                {
                    weight.grad.zero_();
                }
            }
        }

        return loss.to(float64).item<double>();
    }
}
