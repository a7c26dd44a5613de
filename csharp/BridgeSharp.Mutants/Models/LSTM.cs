using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;
using static TorchSharp.torch.nn;

namespace BridgeSharp.Mutants;

/// <summary>Classifies sequences by the last output of an LSTM.</summary>
public class LSTM : Module<Tensor, Tensor>
{
    private readonly string fault;
    private readonly TorchSharp.Modules.LSTM lstm;
    private readonly Linear fc;
    private (Tensor, Tensor)? carried;

    public LSTM(string fault = "") : base("LSTM")
    {
        this.fault = fault;
        lstm = nn.LSTM(8, 12, batchFirst: fault != "batch-first");
        fc = Linear(12, 3);
        RegisterComponents();
    }

    public override Tensor forward(Tensor input)
    {
        var x = fault == "sequence-reversed" ? input.flip(1) : input;
        var (outputs, h, c) = lstm.forward(x, carried);
        if (fault == "state-carried-over")
        {
            carried = (h.detach().DetachFromDisposeScope(), c.detach().DetachFromDisposeScope());
        }

        return fault switch
        {
            "first-output" => fc.forward(outputs.select(1, 0)),
            "cell-for-hidden" => fc.forward(c.squeeze(0)),
            _ => fc.forward(outputs.select(1, -1)),
        };
    }
}
