using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;
using static TorchSharp.torch.nn;
using F = TorchSharp.torch.nn.functional;

namespace BridgeSharp.Mutants;

/// <summary>Two convolutions and two linear layers, with dropout; returns logarithms of probabilities.</summary>
public class LeNet : Module<Tensor, Tensor>
{
    private readonly string fault;
    private readonly Conv2d conv1, conv2;
    private readonly Dropout dropout;
    private readonly Linear fc1, fc2;

    public LeNet(string fault = "") : base("LeNet")
    {
        this.fault = fault;
        conv1 = Conv2d(1, 4, 5, padding: fault == "wrong-padding" ? 1 : 2, padding_mode: fault == "padding-mode" ? PaddingModes.Replicate : PaddingModes.Zeros);
        conv2 = Conv2d(4, 8, 3, stride: fault == "wrong-stride" ? 2 : 1, padding: fault == "wrong-stride" ? 3 : 0);
        dropout = Dropout(fault == "wrong-dropout" ? 0.5 : 0.25);
        fc1 = Linear(72, 32);
        fc2 = Linear(32, 10);
        RegisterComponents();
    }

    public override Tensor forward(Tensor input)
    {
        using var scope = NewDisposeScope();
        var x = F.relu(conv1.forward(input));
        x = fault == "average-pooling" ? F.avg_pool2d(x, 2) : F.max_pool2d(x, 2);
        x = conv2.forward(x);
        x = fault == "missing-activation" ? x : F.relu(x);
        x = F.max_pool2d(x, 2);
        x = fault == "flatten-order" ? x.permute(0, 2, 3, 1).flatten(1) : x.flatten(1);
        x = fault == "dropout-in-eval" ? F.dropout(x, 0.25) : dropout.forward(x);
        x = F.relu(fc1.forward(x));
        x = fc2.forward(x);
        if (fault == "softmax-before-log-softmax")
        {
            x = F.softmax(x, 1);
        }

        // Twice is once, up to rounding: no fault.
        x = fault == "log-softmax-twice" ? F.log_softmax(x, 1) : x;
        return F.log_softmax(x, fault == "log-softmax-dim" ? 0 : 1).MoveToOuterDisposeScope();
    }
}
