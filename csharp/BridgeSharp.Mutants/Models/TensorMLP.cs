using TorchSharp;
using static TorchSharp.torch;
using static TorchSharp.torch.nn;

namespace BridgeSharp.Mutants;

/// <summary>The MLP from scratch: its parameters are plain tensors in fields.</summary>
public class TensorMLP : Module<Tensor, Tensor>
{
    private readonly string fault;
    private readonly Tensor w1, b1, w2, b2, w3, b3;

    public TensorMLP(string fault = "") : base("TensorMLP")
    {
        this.fault = fault;
        var dtype = fault == "float32-weights" ? float32 : float64;
        w1 = Weight(16, 12, dtype);
        b1 = zeros(16, dtype: dtype, requires_grad: true);
        w2 = Weight(16, 16, dtype);
        b2 = zeros(16, dtype: dtype, requires_grad: true);
        w3 = Weight(4, 16, dtype);
        b3 = zeros(4, dtype: dtype, requires_grad: true);
    }

    public override Tensor forward(Tensor input)
    {
        var x = ((input - 0.1307) / 0.3081).to(w1.dtype);
        x = (x.mm(w1.t()) + b1).clamp_min(0);
        x = x + (x.mm(w2.t()) + (fault == "wrong-bias" ? b1 : b2)).clamp_min(0);
        return x.mm(w3.t()) + b3;
    }

    private static Tensor Weight(long outputs, long inputs, ScalarType dtype)
    {
        var weight = randn(outputs, inputs, dtype: dtype) / Math.Sqrt(inputs);
        return weight.requires_grad_();
    }
}
