using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Mutants;

/// <summary>The MLP; the gradients of a batch add up over parts of at most four samples.</summary>
public sealed class AccumulatingLoop : Loop
{
    private const int Part = 4;
    private readonly string fault;
    private readonly optim.Optimizer optimizer;

    public AccumulatingLoop(string fault = "")
    {
        this.fault = fault;
        replicas = [Port("MLP", "")];
        optimizer = optim.SGD(model.parameters(), 0.1);
    }

    public override double step(Tensor inputs, Tensor targets)
    {
        using var scope = NewDisposeScope();
        optimizer.zero_grad();
        var total = targets.shape[0];
        var parts = inputs.split(Part).Zip(targets.split(Part)).ToList();
        var sum = 0.0;
        foreach (var (x, y) in parts)
        {
            if (fault == "tail-dropped" && y.shape[0] < Part)
            {
                continue;
            }

            if (fault == "cleared-between-parts")
            {
                optimizer.zero_grad();
            }

            var loss = cross_entropy(model.forward(x), y);
            loss = fault switch
            {
                "parts-not-scaled" => loss,
                "parts-mean-of-means" => loss / parts.Count,
                _ => loss * ((double)y.shape[0] / total),
            };
            loss.backward();
            sum += loss.item<double>();
        }

        optimizer.step();
        return sum;
    }

    public override void Dispose()
    {
        optimizer.Dispose();
        base.Dispose();
    }
}
