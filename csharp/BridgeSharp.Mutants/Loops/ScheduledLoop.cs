using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Mutants;

/// <summary>The MLP in epochs of two batches; each halves the learning rate.</summary>
public sealed class ScheduledLoop : Loop
{
    private const int Epoch = 2;
    private readonly string fault;
    private readonly optim.Optimizer optimizer;
    private readonly optim.lr_scheduler.LRScheduler scheduler;
    private int batches;

    public ScheduledLoop(string fault = "")
    {
        this.fault = fault;
        replicas = [Port("MLP", "")];
        optimizer = optim.SGD(model.parameters(), 0.1);
        scheduler = optim.lr_scheduler.StepLR(optimizer, step_size: 1, gamma: fault == "gamma" ? 0.1 : 0.5);
    }

    public override double step(Tensor inputs, Tensor targets)
    {
        using var scope = NewDisposeScope();
        if (fault == "schedule-ahead" && batches % Epoch == 0)
        {
            scheduler.step();
        }

        optimizer.zero_grad();
        var loss = cross_entropy(model.forward(inputs), targets);
        loss.backward();
        optimizer.step();
        batches++;
        var due = fault switch
        {
            "schedule-per-batch" => true,
            "schedule-ahead" or "schedule-never" => false,
            "schedule-late" => batches > Epoch && batches % Epoch == 1,
            _ => batches % Epoch == 0,
        };
        if (due)
        {
            scheduler.step();
        }

        return loss.item<double>();
    }

    public override void Dispose()
    {
        optimizer.Dispose();
        base.Dispose();
    }
}
