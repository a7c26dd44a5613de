using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Mutants;

/// <summary>The loop of every tutorial, around a port of a model: SGD with momentum, or evaluation alone.</summary>
public sealed class PlainLoop : Loop
{
    private readonly optim.Optimizer? optimizer;
    private readonly string loss;

    public PlainLoop(string model, string fault = "", string loss = "cross_entropy", string mode = "train")
    {
        replicas = [Port(model, fault)];
        this.loss = loss;
        optimizer = mode == "train" ? optim.SGD(Parameters(this.model), 0.05, momentum: 0.9) : null;
        this.model.train(mode == "train");
    }

    public override double step(Tensor inputs, Tensor targets)
    {
        using var scope = NewDisposeScope();
        optimizer?.zero_grad();
        var outputs = model.forward(inputs);
        var value = loss == "nll_loss" ? nll_loss(outputs, targets) : cross_entropy(outputs, targets);
        if (optimizer is not null)
        {
            value.backward();
            optimizer.step();
        }

        return value.item<double>();
    }

    public override void Dispose()
    {
        optimizer?.Dispose();
        base.Dispose();
    }
}
