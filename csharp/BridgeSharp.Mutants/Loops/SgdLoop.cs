using TorchSharp.Modules;
using static TorchSharp.torch;
using static TorchSharp.torch.nn;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Mutants;

/// <summary>The MLP, trained by SGD with momentum and weight decay.</summary>
public sealed class SgdLoop : Loop
{
    private const double Rate = 0.1, Decay = 0.01;
    private readonly string fault;
    private readonly optim.Optimizer optimizer;
    private (Tensor, Tensor)? waiting;

    public SgdLoop(string fault = "")
    {
        this.fault = fault;
        if (fault == "different-seed")
        {
            random.manual_seed(1);
        }

        replicas = [Port("MLP", "")];
        optimizer = optim.SGD(
            Trained(model.parameters()),
            fault == "learning-rate" ? Rate / 10 : Rate,
            momentum: fault == "no-momentum" ? 0 : 0.9,
            dampening: fault == "dampening" ? 0.9 : 0,
            weight_decay: fault is "no-decay" or "decay-decoupled" ? 0 : Decay,
            nesterov: fault == "nesterov",
            maximize: fault == "sign");
    }

    public override double step(Tensor inputs, Tensor targets)
    {
        using var scope = NewDisposeScope();
        (inputs, targets) = Batch(inputs, targets);
        if (fault != "gradients-never-cleared")
        {
            optimizer.zero_grad();
        }

        var loss = Loss(model.forward(inputs), targets);
        if (fault == "step-before-backward")
        {
            optimizer.step();
            loss.backward();
            return loss.item<double>();
        }

        loss.backward(retain_graph: fault == "backward-twice");
        if (fault == "backward-twice")
        {
            loss.backward();
        }

        if (fault == "cleared-after-backward")
        {
            optimizer.zero_grad();
        }

        Prepare();
        optimizer.step();
        return loss.item<double>();
    }

    public override void Dispose()
    {
        optimizer.Dispose();
        base.Dispose();
    }

    private IEnumerable<Parameter> Trained(IEnumerable<Parameter> parameters)
        => fault == "parameter-not-optimized" ? parameters.Where(parameter => parameter.dim() > 1 || parameter.shape[0] != 4) : parameters;

    private (Tensor, Tensor) Batch(Tensor inputs, Tensor targets)
    {
        switch (fault)
        {
            case "label-order":
                return (inputs, targets.flip(0));
            case "last-sample-dropped":
                return (inputs[..^1], targets[..^1]);
            case "batch-order":
                var batch = (inputs.DetachFromDisposeScope(), targets.DetachFromDisposeScope());
                var late = waiting ?? batch;
                waiting = batch;
                return late;
            default:
                return (inputs, targets);
        }
    }

    private Tensor Loss(Tensor outputs, Tensor targets) => fault switch
    {
        "loss-summed" => cross_entropy(outputs, targets, reduction: Reduction.Sum),
        "loss-divided-by-batch" => cross_entropy(outputs, targets) / targets.shape[0],
        "label-smoothing" => cross_entropy(outputs, targets, label_smoothing: 0.1),
        "softmax-before-loss" => cross_entropy(softmax(outputs, 1), targets),
        _ => cross_entropy(outputs, targets),
    };

    /// <summary>What the port does to parameters and gradients before the optimizer's step.</summary>
    private void Prepare()
    {
        using var mode = no_grad();
        foreach (var parameter in model.parameters())
        {
            if (fault == "decay-decoupled")
            {
                parameter.mul_(1 - (Rate * Decay));
            }
            else if (fault == "rate-twice")
            {
                parameter.grad!.mul_(Rate);
            }
        }
    }
}
