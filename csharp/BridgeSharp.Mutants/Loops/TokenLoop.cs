using TorchSharp;
using static TorchSharp.torch;
using static TorchSharp.torch.nn;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Mutants;

/// <summary>The transformer, trained by AdamW to tell the next token; token 0 is padding.</summary>
public sealed class TokenLoop : Loop
{
    private readonly string fault;
    private readonly optim.Optimizer optimizer;

    public TokenLoop(string fault = "")
    {
        this.fault = fault;
        replicas = [Port("Transformer", "")];
        var parameters = model.parameters();
        var beta2 = fault == "adamw-beta2" ? 0.95 : 0.999;
        optimizer = fault == "adamw-decay-coupled"
            ? optim.Adam(parameters, 0.01, weight_decay: 0.1)
            : optim.AdamW(parameters, 0.01, beta2: beta2, weight_decay: fault == "adamw-default-decay" ? 0.01 : 0.1);
    }

    public override double step(Tensor inputs, Tensor targets)
    {
        using var scope = NewDisposeScope();
        optimizer.zero_grad();
        var logits = model.forward(inputs);
        targets = fault == "targets-not-shifted" ? inputs : targets;
        var loss = fault switch
        {
            "ignore-index-missing" => cross_entropy(logits, targets),
            "targets-transposed" => cross_entropy(logits.transpose(1, 2).flatten(0, 1), targets.t().flatten(), ignore_index: 0),
            "mean-over-all-tokens" => cross_entropy(logits, targets, ignore_index: 0, reduction: Reduction.Sum) / targets.NumberOfElements,
            _ => cross_entropy(logits, targets, ignore_index: 0),
        };
        loss.backward();
        optimizer.step();
        return loss.item<double>();
    }

    public override void Dispose()
    {
        optimizer.Dispose();
        base.Dispose();
    }
}
