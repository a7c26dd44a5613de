using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Trace;

/// <summary>Puts what a recorder is shown into records.</summary>
/// <remarks>Spec: R30.1, R30.5.</remarks>
/// <param name="writer">Takes the records.</param>
/// <param name="keeper">Takes tensors down.</param>
/// <param name="optimizers">One, or one per replica.</param>
internal sealed class Scribe(Writer writer, Keeper keeper, IReadOnlyList<optim.Optimizer> optimizers)
{
    private readonly Dictionary<(string Phase, int Replica, string Name), int> counts = [];

    /// <summary>The step, from 0.</summary>
    public int Number { get; private set; }

    /// <summary>Write entries that others made.</summary>
    public void Write(IEnumerable<Entry> entries) => writer.Write(entries);

    /// <summary>Go on to the next step.</summary>
    public void EndStep()
    {
        counts.Clear();
        Number++;
    }

    /// <summary>Write what does not change.</summary>
    public void Configuration(nn.Module model)
    {
        foreach (var (name, part, value) in TrainingState.Configuration(model, optimizers))
        {
            Value("init", 0, "configuration", name, part, value);
        }
    }

    /// <summary>Write parameters and buffers, and what belongs to the optimizer of a replica.</summary>
    public void State(string phase, int index, nn.Module replica)
    {
        foreach (var (kind, name, tensor) in TrainingState.Tensors(replica))
        {
            Tensor(phase, index, kind, name, "", tensor);
        }

        foreach (var (name, part, value) in index < optimizers.Count ? TrainingState.OptimizerState(optimizers[index], replica) : [])
        {
            if (value is Tensor tensor)
            {
                Tensor(phase, index, "optimizer state", name, part, tensor);
            }
            else
            {
                Value(phase, index, "optimizer state", name, part, value);
            }
        }

        if (index == 0)
        {
            foreach (var (name, part, rate) in TrainingState.LearningRates(optimizers))
            {
                Value(phase, 0, "learning rate", name, part, rate);
            }

            using var random = torch.random.get_rng_state();
            Tensor(phase, 0, "random state", "cpu", "", random);
        }
    }

    /// <summary>Write the gradients of parameters; None is a value too.</summary>
    public void Gradients(string phase, int index, nn.Module replica)
    {
        foreach (var (name, parameter) in TrainingState.Parameters(replica))
        {
            using var gradient = parameter.grad;
            if (gradient is null)
            {
                Value(phase, index, "gradient", name);
            }
            else
            {
                Tensor(phase, index, "gradient", name, "", gradient);
            }
        }
    }

    /// <summary>Write that something of these layers was not observed.</summary>
    public void Unseen(string phase, int index, string kind, IEnumerable<string> names, string reason)
        => writer.Write(names.Select(name => new Entry(new Record(Number, phase, index, kind, name) { unobserved = reason }, null)));

    /// <summary>Write the tensors of a tree, as one more call of that name.</summary>
    public void Tree(string phase, int index, string kind, string name, object? tree)
    {
        var call = counts.GetValueOrDefault((phase, index, name));
        counts[(phase, index, name)] = call + 1;
        var site = CallSite.Find();
        foreach (var (part, tensor) in Leaves.Of(tree).Index())
        {
            var record = new Record(Number, phase, index, kind, name) { call = call, part = FormattableString.Invariant($"{part}"), at = site };
            writer.Write([keeper.Entry(record, tensor)]);
        }
    }

    /// <summary>Write one tensor.</summary>
    public void Tensor(string phase, int index, string kind, string name, string part, Tensor tensor)
        => writer.Write([keeper.Entry(new Record(Number, phase, index, kind, name) { part = part }, tensor)]);

    /// <summary>Write one value that is no tensor.</summary>
    public void Value(string phase, int index, string kind, string name, string part = "", object? value = null)
        => writer.Write([new Entry(new Record(Number, phase, index, kind, name) { part = part, value = value }, null)]);
}
