using TorchSharp.Modules;
using static TorchSharp.torch;
using static TorchSharp.torch.nn;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Mutants;

/// <summary>Two convolutions with batch normalization, and a way around them.</summary>
public class BasicBlock : Module<Tensor, Tensor>
{
    private readonly string fault;
    private readonly Conv2d conv1, conv2;
    private readonly BatchNorm2d bn1, bn2;
    private readonly Sequential? downsample;

    public BasicBlock(long inputs, long outputs, long stride, string fault) : base("BasicBlock")
    {
        this.fault = fault;
        // The paper that the port follows keeps this share of the old statistics; PyTorch takes it of the new.
        var momentum = fault == "batch-norm-momentum" ? 0.9 : 0.1;
        var late = fault == "stride-on-second";
        conv1 = Conv2d(inputs, outputs, 3, stride: late ? 1 : stride, padding: 1, bias: false);
        bn1 = BatchNorm2d(outputs, eps: fault == "batch-norm-eps" ? 1e-3 : 1e-5, momentum: momentum);
        conv2 = Conv2d(outputs, outputs, 3, stride: late ? stride : 1, padding: 1, bias: false);
        bn2 = BatchNorm2d(outputs, momentum: momentum);
        if (stride != 1 || inputs != outputs)
        {
            downsample = Sequential(Conv2d(inputs, outputs, 1, stride: stride, bias: false), BatchNorm2d(outputs, momentum: momentum));
        }

        RegisterComponents();
    }

    public override Tensor forward(Tensor x)
    {
        var identity = downsample is null ? x : downsample.forward(x);
        var y = relu(bn1.forward(conv1.forward(x)));
        y = conv2.forward(y);
        y = fault == "batch-norm-reused" ? bn1.forward(y) : bn2.forward(y);
        return fault switch
        {
            "missing-residual" => relu(y),
            "activation-before-residual" => relu(y) + identity,
            _ => relu(y + identity),
        };
    }
}

/// <summary>A convolution and three residual blocks.</summary>
public class ResNet : Module<Tensor, Tensor>
{
    private readonly string fault;
    private readonly Conv2d conv1;
    private readonly BatchNorm2d bn1;
    private readonly ModuleList<BasicBlock> blocks = new();
    private readonly Linear fc;

    public ResNet(string fault = "") : base("ResNet")
    {
        this.fault = fault;
        conv1 = Conv2d(3, 8, 3, padding: 1, bias: false);
        bn1 = BatchNorm2d(8);
        blocks.Add(new BasicBlock(8, 8, 1, ""));
        blocks.Add(new BasicBlock(8, 16, 2, fault));
        blocks.Add(new BasicBlock(16, 16, 1, ""));
        fc = Linear(16, 10);
        RegisterComponents();
    }

    public override Tensor forward(Tensor x)
    {
        if (fault == "batch-norm-frozen")
        {
            bn1.eval();
        }

        x = relu(bn1.call(conv1.call(x)));
        foreach (var block in blocks)
        {
            x = block.call(x);
        }

        x = fault == "max-for-mean" ? x.amax([2, 3]) : adaptive_avg_pool2d(x, 1).flatten(1);
        return fc.call(x);
    }
}
