using System.Diagnostics;
using BridgeSharp.Data;
using BridgeSharp.Optim;
using TorchSharp;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Models.Examples;

/// <summary>The loop written by hand, verb by verb: an MLP on replicas, beside one undivided model.</summary>
public static class ManualLoop
{
    // Four whole batches and one of a single sample make an epoch.
    private const int Samples = 513, Batch = 128, Features = 1024, Classes = 10, Accumulate = 2, WarmUp = 4;
    private const double Rate = 1e-3;

    /// <summary>Train the MLP on replicas in a loop of verbs, and one undivided model on the same samples.</summary>
    /// <remarks>
    /// The first half of the steps takes one batch each; the other half accumulates two, at a learning rate that grows
    /// to twice as much. Spec: R23.2.
    /// </remarks>
    /// <param name="setting">What to run.</param>
    /// <param name="say">Takes progress, line by line.</param>
    /// <returns>The losses, the state, the speed of replicas and of one model, and how they differ.</returns>
    public static Result Run(Setting setting, Action<string> say)
    {
        using var scope = NewDisposeScope();
        using var model = Model(setting);
        using var alone = Model(setting);
        var replicas = replicate(model, [.. Enumerable.Repeat(CPU, setting.replicas)]);
        using var optimizer = new Adam(model.parameters(), lr: Rate, reference: setting.reference);
        using var other = new Adam(alone.parameters(), lr: Rate, reference: setting.reference);
        List<double> losses = [], speeds = [], speedsAlone = [];
        foreach (var (group, rate) in Updates(setting))
        {
            foreach (var own in optimizer.ParamGroups.Concat(other.ParamGroups))
            {
                own.LearningRate = rate;
            }

            var (loss, speed) = Measured(() => Train(replicas, optimizer, group), group);
            speedsAlone.Add(Measured(() => TrainAlone(alone, other, group), group).Speed);
            speeds.Add(speed);
            losses.Add(loss);
            var progress = $"step {losses.Count} of {setting.steps}: samples {Count(group)}";
            say(FormattableString.Invariant($"{progress}, rate {rate:F5}, loss {loss:F4}"));
        }

        replicas.Skip(1).ToList().ForEach(replica => replica.Dispose());
        var numbers = new OrderedDictionary<string, double>
        {
            ["first loss"] = losses[0],
            ["last loss"] = losses[^1],
            ["difference"] = model.parameters().Zip(alone.parameters(), Difference).Max(),
            ["samples per second"] = speeds.Max(),
            ["samples per second, alone"] = speedsAlone.Max(),
            ["ratio"] = speeds.Max() / speedsAlone.Max(),
        };
        return Result.Of(losses, numbers, StateDict.Of(model));
    }

    /// <summary>Update every replica once from a group of batches, and return the loss.</summary>
    private static double Train(IReadOnlyList<MLP> replicas, torch.optim.Optimizer optimizer, IReadOnlyList<(Tensor, Tensor)> group)
    {
        using var scope = NewDisposeScope();
        foreach (var replica in replicas)
        {
            replica.zero_grad(set_to_none: true);
        }

        var passes = replicas.Select(replica => Pass(replica, Count(group))).ToList();
        var loss = 0.0;
        foreach (var batch in group)
        {
            loss += parallel_apply(passes, scatter(batch, [.. replicas.Select(_ => CPU)])).Sum();
        }

        average(replicas, reduction: "sum", broadcast: false);
        step(replicas, optimizer);
        return loss;
    }

    /// <summary>Add the gradients of a shard, whose loss is its part of the mean over all samples.</summary>
    private static Func<(Tensor Inputs, Tensor Labels), double> Pass(MLP replica, long total) => shard =>
    {
        var loss = nn.functional.cross_entropy(replica.call(shard.Inputs), shard.Labels) * ((double)shard.Labels.size(0) / total);
        loss.backward();
        return loss.to(float64).item<double>();
    };

    /// <summary>Update one undivided model from the group as one batch: the loop of one device.</summary>
    private static double TrainAlone(MLP model, torch.optim.Optimizer optimizer, IReadOnlyList<(Tensor Inputs, Tensor Labels)> group)
    {
        using var scope = NewDisposeScope();
        var inputs = cat([.. group.Select(batch => batch.Inputs)]);
        var labels = cat([.. group.Select(batch => batch.Labels)]);
        optimizer.zero_grad();
        var loss = nn.functional.cross_entropy(model.call(inputs), labels);
        loss.backward();
        optimizer.step();
        return loss.to(float64).item<double>();
    }

    /// <summary>Yield the batches of each step, and its learning rate.</summary>
    private static IEnumerable<((Tensor, Tensor)[] Group, double Rate)> Updates(Setting setting)
    {
        var data = Data(setting);
        var half = (setting.steps + 1) / 2;
        foreach (var group in Groups(data, setting.seed, 1).Take(half))
        {
            yield return (group, Rate);
        }

        var scaling = new LinearScaling(Accumulate, WarmUp);
        var groups = Groups(data, setting.seed, Accumulate);
        foreach (var (update, group) in groups.Take(setting.steps - half).Index())
        {
            yield return (group, Rate * scaling.at(update));
        }
    }

    /// <summary>Yield batches in groups, epoch after epoch; the last group of an epoch may be smaller.</summary>
    private static IEnumerable<(Tensor, Tensor)[]> Groups((Tensor, Tensor) data, long seed, int size)
    {
        for (var epoch = 0; ; epoch++)
        {
            foreach (var group in Epoch(data, seed, epoch).Chunk(size))
            {
                yield return group;
                foreach (var (inputs, labels) in group)
                {
                    inputs.Dispose();
                    labels.Dispose();
                }
            }
        }
    }

    /// <summary>Yield the batches of an epoch in its own order; a thread reads one ahead.</summary>
    private static IEnumerable<(Tensor, Tensor)> Epoch((Tensor Inputs, Tensor Labels) data, long seed, int epoch)
    {
        using var samples = Order.order(Samples, seed, epoch);
        var parts = samples.split(Batch);
        var ahead = Task.Run(() => Read(parts[0]));
        foreach (var indices in parts.Skip(1))
        {
            var batch = ahead.Result;
            ahead = Task.Run(() => Read(indices));
            yield return batch;
        }

        yield return ahead.Result;

        (Tensor, Tensor) Read(Tensor indices) => (data.Inputs[indices], data.Labels[indices]);
    }

    /// <summary>Return the loss of a step, and how many samples a second it took.</summary>
    private static (double Loss, double Speed) Measured(Func<double> train, IReadOnlyList<(Tensor, Tensor)> group)
    {
        var start = Stopwatch.GetTimestamp();
        var loss = train();
        return (loss, Count(group) / Stopwatch.GetElapsedTime(start).TotalSeconds);
    }

    /// <summary>Count the samples of a group.</summary>
    private static long Count(IReadOnlyList<(Tensor Inputs, Tensor Labels)> group) => group.Sum(batch => batch.Labels.size(0));

    /// <summary>Measure how far two tensors are apart at most.</summary>
    private static double Difference(Tensor one, Tensor other)
    {
        using var scope = NewDisposeScope();
        return (one - other).abs().max().to(float64).item<double>();
    }

    /// <summary>Make the model from its seed.</summary>
    private static MLP Model(Setting setting)
    {
        random.manual_seed(setting.seed);
        return new MLP().to(setting.scalar_type);
    }

    /// <summary>Draw vectors around the centers of their classes.</summary>
    private static (Tensor Inputs, Tensor Labels) Data(Setting setting)
    {
        using var scope = NewDisposeScope();
        using var draw = new Generator((ulong)setting.seed);
        var labels = randint(Classes, [Samples], generator: draw);
        var centers = randn([Classes, Features], generator: draw);
        var inputs = (centers[labels] + randn([Samples, Features], generator: draw)).to(setting.scalar_type);
        return scope.MoveToOuter(inputs, labels);
    }
}
