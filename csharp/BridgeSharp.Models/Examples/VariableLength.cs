using BridgeSharp.Data;
using BridgeSharp.Optim;
using TorchSharp;
using TorchSharp.Modules;
using static BridgeSharp.bridge;
using static TorchSharp.torch;
using Adam = BridgeSharp.Optim.Adam;

namespace BridgeSharp.Models.Examples;

/// <summary>An LSTM 36-64 and a linear layer on its last hidden state.</summary>
/// <remarks>Shapes: <c>(length, 36)</c> to <c>(1,)</c>.</remarks>
public sealed class SeqModel : nn.Module<Tensor, Tensor>
{
    private readonly LSTM lstm;
    private readonly Linear fc;

    /// <summary>Initialize as PyTorch's layers do, from the default generator.</summary>
    public SeqModel()
        : base(nameof(SeqModel))
    {
        lstm = nn.LSTM(VariableLength.Features, VariableLength.Hidden, batchFirst: true);
        fc = nn.Linear(VariableLength.Hidden, 1);
        RegisterComponents();
    }

    /// <summary>Read one sequence to its end.</summary>
    /// <param name="input">A sequence <c>(length, 36)</c>.</param>
    /// <returns>What it says <c>(1,)</c>.</returns>
    public override Tensor forward(Tensor input)
    {
        var (_, hidden, _) = lstm.call(input.unsqueeze(0));
        return fc.call(hidden[0, 0]);
    }
}

/// <summary>Sequences of different lengths: an LSTM, and one whole sample for each replica.</summary>
public static class VariableLength
{
    internal const int Features = 36, Hidden = 64;

    // A prime number: with 2 or more replicas the last batch of an epoch has fewer samples than devices.
    private const int Samples = 11, Shortest = 5, Longest = 20;
    private const double Rate = 1e-2;

    /// <summary>Train the LSTM on one sequence per replica, and one undivided model on the same sequences.</summary>
    /// <remarks>Spec: R23.2.</remarks>
    /// <param name="setting">What to run.</param>
    /// <param name="say">Takes progress, line by line.</param>
    /// <returns>The losses, the state, and how far the parameters of replicas and of one model are apart.</returns>
    public static Result Run(Setting setting, Action<string> say)
    {
        using var scope = NewDisposeScope();
        var devices = Enumerable.Repeat(CPU, setting.replicas).ToList();
        using var model = Model(setting);
        using var alone = Model(setting);
        var replicas = replicate(model, devices);
        var passes = replicas.Select(Pass).ToList();
        using var optimizer = new Adam(model.parameters(), lr: Rate, reference: setting.reference);
        using var other = new Adam(alone.parameters(), lr: Rate, reference: setting.reference);
        List<double> losses = [];
        foreach (var batch in Batches(setting).Take(setting.steps))
        {
            using var inner = NewDisposeScope();
            foreach (var replica in replicas)
            {
                replica.zero_grad(set_to_none: true);
            }

            var parts = parallel_apply(passes, scatter(batch, devices));
            average(replicas, reduction: "sum", broadcast: false);
            step(replicas, optimizer);
            losses.Add(parts.Sum() / batch.Count);
            TrainAlone(alone, other, batch);
            var lengths = string.Join(", ", batch.Select(sample => sample.Item1.size(0)));
            say(FormattableString.Invariant($"step {losses.Count} of {setting.steps}: lengths {lengths}, loss {losses[^1]:F4}"));
        }

        var epoch = Math.Min((Samples + setting.replicas - 1) / setting.replicas, setting.steps);
        replicas.Skip(1).ToList().ForEach(replica => replica.Dispose());
        var numbers = new OrderedDictionary<string, double>
        {
            ["loss, first epoch"] = losses.Take(epoch).Average(),
            ["loss, last epoch"] = losses.TakeLast(epoch).Average(),
            ["difference"] = model.parameters().Zip(alone.parameters(), Difference).Max(),
        };
        return Result.Of(losses, numbers, StateDict.Of(model));
    }

    /// <summary>Add the gradients of the summed loss of samples, read one by one: no padding, no mask.</summary>
    private static Func<List<(Tensor Sequence, Tensor Target)>, double> Pass(SeqModel model) => samples =>
    {
        var losses = samples.Select(sample => nn.functional.mse_loss(model.call(sample.Sequence), sample.Target));
        var loss = stack([.. losses]).sum();
        loss.backward();
        return loss.to(float64).item<double>();
    };

    /// <summary>Update one undivided model from all samples: the loop of one device.</summary>
    private static void TrainAlone(SeqModel model, torch.optim.Optimizer optimizer, List<(Tensor, Tensor)> samples)
    {
        optimizer.zero_grad();
        Pass(model)(samples);
        optimizer.step();
    }

    /// <summary>Yield as many samples as there are replicas, or what is left of them, epoch after epoch.</summary>
    private static IEnumerable<List<(Tensor, Tensor)>> Batches(Setting setting)
    {
        var data = Data(setting);
        for (var epoch = 0; ; epoch++)
        {
            using var samples = Order.order(Samples, setting.seed, epoch);
            foreach (var indices in samples.data<long>().ToArray().Chunk(setting.replicas))
            {
                yield return [.. indices.Select(index => data[(int)index])];
            }
        }
    }

    /// <summary>Measure how far two tensors are apart at most.</summary>
    private static double Difference(Tensor one, Tensor other)
    {
        using var scope = NewDisposeScope();
        return (one - other).abs().max().to(float64).item<double>();
    }

    /// <summary>Make the model from its seed.</summary>
    private static SeqModel Model(Setting setting)
    {
        random.manual_seed(setting.seed);
        return new SeqModel().to(setting.scalar_type);
    }

    /// <summary>Draw sequences, each around a level of its own, which is what to find.</summary>
    private static List<(Tensor, Tensor)> Data(Setting setting)
    {
        using var draw = new Generator((ulong)setting.seed);
        var lengths = randint(Shortest, Longest + 1, [Samples], generator: draw).data<long>().ToArray();
        var levels = randn([Samples, 1], generator: draw);
        var samples = new List<(Tensor, Tensor)>();
        foreach (var (length, level) in lengths.Zip(levels.unbind()))
        {
            var sequence = level + randn([length, Features], generator: draw);
            samples.Add((sequence.to(setting.scalar_type), level.to(setting.scalar_type)));
        }

        return samples;
    }
}
