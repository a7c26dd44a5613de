using TorchSharp.Modules;
using static TorchSharp.torch;
using static TorchSharp.torch.nn;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Mutants;

/// <summary>An MLP whose middle layer is one layer, three times.</summary>
public class SharedMLP : Module<Tensor, Tensor>
{
    private readonly Linear first = Linear(12, 16);
    private readonly ModuleList<Linear> layers = new();
    private readonly Linear last = Linear(16, 4);
    private readonly int times;

    public SharedMLP(string fault = "") : base("SharedMLP")
    {
        var layer = Linear(16, 16);
        for (var i = 0; i < 3; i++)
        {
            layers.Add(fault == "layers-not-shared" && i == 2 ? Linear(16, 16) : layer);
        }

        times = fault == "layer-skipped" ? 2 : layers.Count;
        RegisterComponents();
    }

    public override Tensor forward(Tensor x)
    {
        x = relu(first.forward(x));
        for (var i = 0; i < times; i++)
        {
            x = tanh(layers[i].forward(x));
        }

        return last.forward(x);
    }
}
