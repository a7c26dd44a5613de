using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;
using static TorchSharp.torch.nn;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Mutants;

/// <summary>Three linear layers on normalized inputs, the second with a way around it.</summary>
public class MLP : Module<Tensor, Tensor>
{
    private readonly string fault;
    private readonly Linear fc1, fc2, fc3;
    private readonly Linear? fc4;

    public MLP(string fault = "") : base("MLP")
    {
        this.fault = fault;
        fc1 = Linear(12, 16);
        fc2 = Linear(16, 16, hasBias: fault != "missing-bias");
        fc3 = Linear(16, 4);
        if (fault == "extra-parameter")
        {
            fc4 = Linear(4, 4);
        }

        if (fault == "frozen-layer")
        {
            fc1.weight!.requires_grad = false;
        }

        if (fault == "different-init")
        {
            init.xavier_uniform_(fc2.weight!);
        }

        RegisterComponents();
    }

    public override Tensor forward(Tensor x)
    {
        x = fault == "float32-constant" ? (x - 0.1307f) / 0.3081f : (x - 0.1307) / 0.3081;
        if (fault == "fixed-batch-size")
        {
            x = x.view(8, -1);
        }

        x = fc1.forward(x);
        x = fault == "wrong-activation" ? leaky_relu(x, 0.01) : relu(x);
        var inner = fault == "detached-branch" ? x.detach() : x;
        inner = fault == "transposed-weight" ? inner.matmul(fc2.weight!) + fc2.bias! : fc2.forward(inner);
        x = x + relu(inner);
        if (fault == "float32-activation")
        {
            x = x.to(float32).to(float64);
        }

        return fc3.forward(x);
    }
}
