using TorchSharp;
using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Mutants;

/// <summary>The MLP, trained by an Adam written out.</summary>
public sealed class AdamLoop : Loop
{
    private const double Eps = 1e-8, Decay = 0.01;
    private readonly string fault;
    private readonly double rate, beta1, beta2;
    private readonly List<(Tensor Parameter, Tensor First, Tensor Second, Tensor Largest)> moments;
    private int count;

    public AdamLoop(string fault = "")
    {
        this.fault = fault;
        replicas = [Port("MLP", "")];
        rate = fault == "adam-learning-rate" ? 0.001 : 0.01;
        (beta1, beta2) = fault switch
        {
            "betas-swapped" => (0.99, 0.9),
            "beta2" => (0.9, 0.999),
            _ => (0.9, 0.99),
        };
        count = fault == "step-count" ? 1 : 0;
        moments = [.. model.parameters().Select(p => ((Tensor)p, zeros_like(p, requires_grad: false), zeros_like(p, requires_grad: false), zeros_like(p, requires_grad: false)))];
    }

    public override double step(Tensor inputs, Tensor targets)
    {
        using var scope = NewDisposeScope();
        model.zero_grad();
        var loss = cross_entropy(model.forward(inputs), targets);
        loss.backward();
        using (no_grad())
        {
            count++;
            moments.ForEach(moment => Update(moment.Parameter, moment.First, moment.Second, moment.Largest));
        }

        return loss.item<double>();
    }

    public override void Dispose()
    {
        moments.ForEach(moment => new[] { moment.First, moment.Second, moment.Largest }.ToList().ForEach(tensor => tensor.Dispose()));
        base.Dispose();
    }

    private void Update(Tensor parameter, Tensor first, Tensor second, Tensor largest)
    {
        var gradient = parameter.grad!;
        if (fault == "adam-decay-decoupled")
        {
            parameter.mul_(1 - (rate * Decay));
        }
        else
        {
            gradient = gradient + (parameter * Decay);
        }

        first.mul_(beta1).add_(gradient * (1 - beta1));
        second.mul_(beta2).add_(gradient * gradient * (1 - beta2));
        var (scale1, scale2) = (1 - Math.Pow(beta1, count), 1 - Math.Pow(beta2, count));
        if (fault == "no-bias-correction")
        {
            (scale1, scale2) = (1, 1);
        }

        var variance = second;
        if (fault == "amsgrad")
        {
            largest.copy_(maximum(largest, second));
            variance = largest;
        }

        var divisor = fault switch
        {
            "eps-inside-root" => ((variance / scale2) + Eps).sqrt(),
            "no-root" => (variance / scale2) + Eps,
            _ => (variance / scale2).sqrt() + Eps,
        };
        parameter.sub_(first / scale1 / divisor * rate);
    }
}
