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

/// <summary>Trains with LBFGS, whose closure no trainer can give, and writes its checkpoint itself; the twin of Python's.</summary>
public sealed class ClosureRun : IDisposable
{
    private readonly GroupedNet model;
    private readonly LBFGS optimizer;
    private readonly Scheduler scheduler;
    private readonly Loader<(Tensor, Tensor)> loader;
    private readonly (string Path, long Step) saving;
    private readonly IEnumerator<(Tensor Inputs, Tensor Targets)> batches;
    private readonly Tensor rates = zeros(1, dtype: float64);
    private long steps;

    /// <summary>Make the run, or go on with one.</summary>
    /// <param name="search">The line search; null is none.</param>
    /// <param name="dtype"><c>"float32"</c> or <c>"float64"</c>.</param>
    /// <param name="reference">Whose formulas and rules.</param>
    /// <param name="save">The file that it is saved to.</param>
    /// <param name="cut">After how many steps.</param>
    /// <param name="load">The file that it goes on from; null begins.</param>
    public ClosureRun(string? search, string dtype, string reference, string save, long cut, string? load = null)
    {
        model = new GroupedNet().to(Vectors.Dtypes[dtype]);
        optimizer = new LBFGS(model.parameters(), lr: 0.25, max_iter: 4, line_search_fn: search, reference: reference);
        scheduler = Schedules.Make("LinearLR", optimizer, cyclic: false, reference);
        using var generator = new Generator(1);
        loader = new((randn([22, 8], generator: generator).to(Vectors.Dtypes[dtype]), randint(0, 4, [22], dtype: int64, generator: generator)), 6, seed: 2);
        saving = (save, cut);
        if (load is not null)
        {
            Take((IDictionary)TreeFile.read(load)!);
        }

        batches = Enumerable.Repeat(loader, int.MaxValue).SelectMany(epoch => epoch).GetEnumerator();
    }

    /// <summary>The model's state, and the rate.</summary>
    public OrderedDictionary<string, Tensor> state => new(StateDict.Of(model)) { ["rates"] = rates };

    /// <summary>Train on the next batch of its loader, save where it is time, and return the loss.</summary>
    /// <param name="inputs">Not used: the batches are the loader's.</param>
    /// <param name="targets">Not used.</param>
    public double step(Tensor inputs, Tensor targets)
    {
        batches.MoveNext();
        var loss = optimizer.step(() =>
        {
            optimizer.zero_grad();
            var evaluated = cross_entropy(model.call(batches.Current.Inputs), batches.Current.Targets);
            evaluated.backward();
            return evaluated;
        });
        scheduler.step();
        rates[0] = optimizer.param_groups[0].lr;
        if (++steps == saving.Step)
        {
            TreeFile.write(Whole(), saving.Path);
        }

        return loss.ToDouble();
    }

    /// <summary>Dispose the loader's thread, the optimizer and the model.</summary>
    public void Dispose()
    {
        batches.Dispose();
        optimizer.Dispose();
        model.Dispose();
        rates.Dispose();
    }

    private Dictionary<string, object?> Whole() => new()
    {
        ["model"] = StateDict.Of(model),
        ["optimizer"] = optimizer.state_dict(),
        ["scheduler"] = scheduler.state_dict(),
        ["random"] = random.get_rng_state(),
        ["loader"] = loader.state_dict(),
        ["steps"] = steps,
    };

    private void Take(IDictionary tree)
    {
        StateDict.Load(model, AsStateDict.as_state_dict(tree["model"]));
        optimizer.load_state_dict((IDictionary)tree["optimizer"]!);
        ((IStateful)scheduler).load_state_dict(tree["scheduler"]);
        ((IStateful)loader).load_state_dict(tree["loader"]);
        random.set_rng_state((Tensor)tree["random"]!);
        steps = (long)tree["steps"]!;
    }
}
