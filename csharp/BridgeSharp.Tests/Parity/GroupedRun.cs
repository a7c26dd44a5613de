using System.Collections;
using BridgeSharp.Checkpoint;
using BridgeSharp.Data;
using BridgeSharp.Optim;
using BridgeSharp.Parallel;
using BridgeSharp.Tests.Spec;
using TorchSharp;
using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Tests.Parity;

/// <summary>Trains two replicas with an optimizer of two groups and a scheduler, from a loader of its own; the parity tests hold it against its Python twin.</summary>
public sealed class GroupedRun : IDisposable
{
    private readonly GroupedNet model;
    private readonly Trainer trainer;
    private readonly Loader<(object, object)> loader;
    private readonly ReduceLROnPlateau? plateau;
    private readonly Tensor rates;
    private readonly (string Path, long Step) saving;
    private readonly IEnumerator<(object Inputs, object Targets)> batches;

    /// <summary>Make the run, or go on with one.</summary>
    /// <param name="optimizer">The name of its optimizer.</param>
    /// <param name="scheduler">The class of its scheduler.</param>
    /// <param name="dtype"><c>"float32"</c> or <c>"float64"</c>.</param>
    /// <param name="reference">Whose formulas and rules.</param>
    /// <param name="save">The file that it is saved to.</param>
    /// <param name="cut">After how many steps.</param>
    /// <param name="load">The file that it goes on from; null begins.</param>
    public GroupedRun(string optimizer, string scheduler, string dtype, string reference, string save, long cut, string? load = null)
    {
        var cyclic = optimizer is "sgd" or "adam";
        model = new GroupedNet().to(Vectors.Dtypes[dtype]);
        var own = Optimizer(optimizer, reference);
        Scheduler Scheduled(optim.Optimizer made) => Schedules.Make(scheduler, (Optimizer)made, cyclic, reference);
        var stepped = scheduler != nameof(ReduceLROnPlateau);
        trainer = new Trainer(
            model,
            own,
            (outputs, targets) => cross_entropy((Tensor)outputs, (Tensor)targets),
            [CPU, CPU],
            new() { scheduler = stepped ? Scheduled : null });
        plateau = stepped ? null : (ReduceLROnPlateau)Scheduled(own);
        using var generator = new Generator(1);
        loader = new((randn([22, 8], generator: generator).to(Vectors.Dtypes[dtype]), randint(0, 4, [22], dtype: int64, generator: generator)), 6, seed: 2);
        rates = zeros(2, dtype: float64);
        saving = (save, cut);
        if (load is not null && trainer.load(load, loader) is IDictionary extra)
        {
            ((IStateful)plateau!).load_state_dict(extra["plateau"]);
        }

        batches = Enumerable.Repeat(loader, int.MaxValue).SelectMany(epoch => epoch).GetEnumerator();
    }

    /// <summary>The model's state, and the rates of the groups.</summary>
    public OrderedDictionary<string, Tensor> state => new(trainer.state_dict()) { ["rates"] = rates };

    /// <summary>Train on the next batch of its loader, save where it is time, and return the loss.</summary>
    /// <param name="inputs">Not used: the batches are the loader's.</param>
    /// <param name="targets">Not used.</param>
    public double step(Tensor inputs, Tensor targets)
    {
        batches.MoveNext();
        var loss = trainer.step(batches.Current.Inputs, batches.Current.Targets);
        plateau?.step(loss);
        foreach (var (index, group) in trainer.optimizer.ParamGroups.Index())
        {
            rates[index] = group.LearningRate;
        }

        if (trainer.steps == saving.Step)
        {
            trainer.save(saving.Path, loader, plateau is null ? null : new Dictionary<string, object?> { ["plateau"] = plateau.state_dict() });
        }

        return loss;
    }

    /// <summary>Dispose the loader's thread, the trainer and the model.</summary>
    public void Dispose()
    {
        batches.Dispose();
        trainer.Dispose();
        trainer.optimizer.Dispose();
        model.Dispose();
        rates.Dispose();
    }

    private Optimizer Optimizer(string name, string reference)
    {
        var (first, second) = model.Groups;
        var options = new Dictionary<string, object> { ["lr"] = 0.01 };
        if (name is "sgd" or "rmsprop")
        {
            options["momentum"] = 0.9;
        }

        var made = OptimizerMakers.Create(name, first, options, reference);
        made.add_param_group(OptimizerMakers.Groups[name](second, 0.005));
        return made;
    }
}
