using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;
using static TorchSharp.torch.nn;

namespace BridgeSharp.Mutants;

/// <summary>An LSTM layer written out, with the names of PyTorch's.</summary>
public class HandLSTMLayer : Module<Tensor, Tensor>
{
    private readonly string fault;
    private readonly Parameter weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0;

    public HandLSTMLayer(long inputs, long hidden, string fault) : base("HandLSTMLayer")
    {
        this.fault = fault;
        var bound = 1 / Math.Sqrt(hidden);
        weight_ih_l0 = Parameter(empty(4 * hidden, inputs).uniform_(-bound, bound));
        weight_hh_l0 = Parameter(empty(4 * hidden, hidden).uniform_(-bound, bound));
        bias_ih_l0 = Parameter(empty(4 * hidden).uniform_(-bound, bound));
        bias_hh_l0 = Parameter(empty(4 * hidden).uniform_(-bound, bound));
        RegisterComponents();
    }

    public override Tensor forward(Tensor x)
    {
        var hidden = weight_hh_l0.shape[1];
        var h = zeros(x.shape[0], hidden, dtype: x.dtype);
        var c = zeros_like(h);
        for (var t = 0; t < x.shape[1]; t++)
        {
            var gates = functional.linear(x.select(1, t), weight_ih_l0, bias_ih_l0);
            gates = gates + functional.linear(h, weight_hh_l0, fault == "recurrent-bias-unused" ? null : bias_hh_l0);
            var parts = gates.chunk(4, 1);
            // PyTorch's order is input, forget, cell, output; Keras and some papers have others.
            var (i, f, g, o) = fault == "gate-order"
                ? (parts[0], parts[1], parts[3], parts[2])
                : (parts[0], parts[1], parts[2], parts[3]);
            var candidate = fault == "cell-activation" ? sigmoid(g) : tanh(g);
            var forget = fault == "forget-bias" ? sigmoid(f + 1) : sigmoid(f);
            c = forget * c + sigmoid(i) * candidate;
            h = sigmoid(o) * tanh(c);
        }

        return h;
    }
}

/// <summary>Classifies sequences by the last state of an LSTM written out.</summary>
public class HandLSTM : Module<Tensor, Tensor>
{
    private readonly HandLSTMLayer lstm;
    private readonly Linear fc;

    public HandLSTM(string fault = "") : base("HandLSTM")
    {
        lstm = new HandLSTMLayer(8, 12, fault);
        fc = Linear(12, 3);
        RegisterComponents();
    }

    public override Tensor forward(Tensor input) => fc.forward(lstm.forward(input));
}
