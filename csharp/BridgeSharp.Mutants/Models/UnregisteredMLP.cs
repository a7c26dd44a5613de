using TorchSharp.Modules;
using static TorchSharp.torch;
using static TorchSharp.torch.nn;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Mutants;

/// <summary>The MLP of someone who forgot <c>RegisterComponents</c> and collects the parameters by hand.</summary>
public class UnregisteredMLP : Module<Tensor, Tensor>
{
    private readonly string fault;
    private readonly Linear fc1 = Linear(12, 16, dtype: float64);
    private readonly Linear fc2 = Linear(16, 16, dtype: float64);
    private readonly Linear fc3 = Linear(16, 4, dtype: float64);

    public UnregisteredMLP(string fault = "") : base("UnregisteredMLP") => this.fault = fault;

    public IEnumerable<Parameter> Weights() => fc1.parameters().Concat(fc2.parameters()).Concat(fc3.parameters());

    public override Tensor forward(Tensor x)
    {
        x = (x - 0.1307) / 0.3081;
        x = relu(fc1.forward(x));
        x = fault == "activation-before-layer" ? x + fc2.forward(relu(x)) : x + relu(fc2.forward(x));
        return fc3.forward(x);
    }
}
