using TorchSharp;
using static BridgeSharp.bridge;
using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Mutants;

/// <summary>A model on two replicas, verb by verb, with the gradients' norm clipped if one is given.</summary>
public sealed class ReplicaLoop : Loop
{
    private static readonly Device[] Devices = [CPU, CPU];
    private readonly string fault;
    private readonly double? norm;
    private readonly torch.optim.Optimizer optimizer;

    public ReplicaLoop(string model, string fault = "", double? norm = null)
    {
        this.fault = fault;
        this.norm = norm;
        replicas = replicate(Port(model, ""), Devices);
        optimizer = torch.optim.SGD(this.model.parameters(), 0.1, momentum: 0.9);
    }

    public override double step(Tensor inputs, Tensor targets)
    {
        using var scope = NewDisposeScope();
        foreach (var replica in replicas)
        {
            replica.zero_grad();
        }

        var shards = scatter((inputs, targets), Devices);
        var counts = shards.Select(shard => (double)shard.targets.shape[0]).ToList();
        shards = fault switch
        {
            "shard-dropped" => [shards[0]],
            "same-shard" => [shards[0], shards[0]],
            _ => shards,
        };
        var losses = parallel_apply([.. replicas.Select(Pass)], shards);
        if (fault == "clip-before-reduction")
        {
            replicas.ToList().ForEach(replica => clip_gradients(replica.parameters(), norm));
        }

        Reduce(counts);
        Clip();
        Update();
        var weighted = losses.Zip(counts, (loss, count) => loss * count / counts.Sum()).Sum();
        return fault == "loss-of-first" ? losses[0] : weighted;
    }

    public override void Dispose()
    {
        optimizer.Dispose();
        base.Dispose();
    }

    private Func<(Tensor Inputs, Tensor Targets), double> Pass(nn.Module<Tensor, Tensor> replica) => shard =>
    {
        var loss = cross_entropy(replica.forward(shard.Inputs), shard.Targets);
        (fault == "loss-divided-by-replicas" ? loss / replicas.Count : loss).backward();
        return loss.item<double>();
    };

    private void Reduce(List<double> counts)
    {
        switch (fault)
        {
            case "sum-for-mean":
                average(replicas, reduction: "sum");
                break;
            case "mean-of-means":
                average(replicas, reduction: "mean");
                break;
            case "reduction-missing":
                break;
            default:
                average(replicas, counts);
                break;
        }
    }

    private void Clip()
    {
        if (fault == "clip-by-value")
        {
            clip_gradients(model.parameters(), max_value: norm);
        }
        else if (fault is not ("clip-before-reduction" or "clip-missing"))
        {
            clip_gradients(model.parameters(), norm);
        }
    }

    private void Update()
    {
        switch (fault)
        {
            case "resync-missing":
                optimizer.step();
                break;
            case "buffers-not-resynced":
                bridge.step(replicas, optimizer, buffers: "each");
                break;
            case "buffers-averaged":
                bridge.step(replicas, optimizer, buffers: "mean");
                break;
            default:
                bridge.step(replicas, optimizer);
                break;
        }
    }
}
