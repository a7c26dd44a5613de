using System.Reflection;
using System.Text.Json;
using BridgeSharp.Optim;
using TorchSharp;
using Xunit;
using static TorchSharp.torch;
using Parameter = TorchSharp.Modules.Parameter;

namespace BridgeSharp.Tests.Spec;

/// <summary>Schedulers, and their states.</summary>
[Collection(nameof(Serial))]
public sealed class SchedulerTests
{
    public static TheoryData<string> New => Vectors.Names("schedulers");

    public static TheoryData<string> Old => Vectors.Names("schedulers-1.13");

    /// <summary>Schedulers give the bits, errors and states of PyTorch 2.10. Spec: R27.1, R27.2, R27.3.</summary>
    [Theory]
    [MemberData(nameof(New))]
    public void Schedulers_hold(string name) => Check(Vectors.Find("schedulers", name));

    /// <summary>They give those of PyTorch 1.13. Spec: R27.1, R27.2, R27.3.</summary>
    [Theory]
    [MemberData(nameof(Old))]
    public void Schedulers_of_pytorch_1_13_hold(string name) => Check(Vectors.Find("schedulers-1.13", name));

    /// <summary>A scheduler that takes a state after any step goes on as the one that wrote it. Spec: R27.3.</summary>
    [Theory]
    [InlineData("schedulers")]
    [InlineData("schedulers-1.13")]
    public void States_are_taken_at_any_step(string file)
    {
        using var scope = NewDisposeScope();
        foreach (var name in Vectors.Names(file).Select(row => row.Data))
        {
            var found = new SchedulerCase(Vectors.Find(file, name));
            for (var done = 0; !found.Fails && done < found.Steps.Count; done++)
            {
                var optimizer = found.Optimizer();
                var first = found.Make(optimizer);
                found.Steps.Take(done).ToList().ForEach(step => SchedulerCase.Step(first, step));
                var second = found.Make(found.Optimizer());
                second.load_state_dict(first.state_dict());
                ((Optimizer)second.optimizer).load_state_dict(((Optimizer)optimizer).state_dict());
                Same.Trees(first.state_dict(), second.state_dict());
                foreach (var (step, rates) in found.Steps.Zip(found.Rates.Skip(1)).Skip(done))
                {
                    SchedulerCase.Step(second, step);
                    Assert.Equal(rates, second.optimizer.ParamGroups.Select(group => group.LearningRate));
                }
            }
        }
    }

    /// <summary>TorchSharp's optimizers are moved as BridgeSharp's are. Spec: R27.1.</summary>
    [Fact]
    public void Optimizers_of_torchsharp_are_moved()
    {
        using var scope = NewDisposeScope();
        foreach (var name in Vectors.Names("schedulers").Select(row => row.Data))
        {
            var found = new SchedulerCase(Vectors.Find("schedulers", name));
            if (found.FromTheBeginning)
            {
                var scheduler = found.Make(SchedulerCase.TorchSharps());
                foreach (var (step, rates) in found.Steps.Zip(found.Rates.Skip(1)))
                {
                    SchedulerCase.Step(scheduler, step);
                    Assert.Equal(rates, scheduler.optimizer.ParamGroups.Select(group => group.LearningRate));
                }
            }
        }
    }

    /// <summary>A group that is added meanwhile gets its rate where it can, and is refused in PyTorch's words where not. Spec: R27.2.</summary>
    [Fact]
    public void Groups_are_added()
    {
        using var scope = NewDisposeScope();
        var schedulers = new Scheduler[]
        {
            new ExponentialLR(Sgd(), 0.5), new LambdaLR(Sgd(), epoch => 2), new LambdaLR(Sgd(), epoch => 2, reference: "1.13"),
        };
        foreach (var scheduler in schedulers)
        {
            scheduler.optimizer.add_param_group(new SGD.ParamGroup([new Parameter(zeros(1))], 0.25));
            Assert.True(scheduler.MayFail);
        }

        schedulers[0].step();
        schedulers[2].step();
        var error = Assert.Throws<ArgumentException>(schedulers[1].step);
        Assert.Equal("zip() argument 2 is shorter than argument 1", error.Message);
        Assert.Equal([0.25, 0.125], schedulers[0].get_last_lr());
        Assert.Equal([1, 0.25], schedulers[2].get_last_lr());
    }

    /// <summary>A plateau counts groups that are added, unless it was told the lowest rate of each. Spec: R27.2.</summary>
    [Fact]
    public void A_plateau_takes_groups_that_are_added()
    {
        using var scope = NewDisposeScope();
        foreach (var each in new[] { false, true })
        {
            var scheduler = new ReduceLROnPlateau(Sgd(), patience: 0, min_lr: each ? [0.125] : 0.125, factor: 0.25);
            scheduler.optimizer.add_param_group(new SGD.ParamGroup([new Parameter(zeros(1))], 0.25));
            scheduler.step(1);
            if (each)
            {
                var error = Assert.Throws<InvalidOperationException>(() => scheduler.step(1));
                Assert.StartsWith("The number of param groups in the `optimizer` (2) differs from when `ReduceLROnPlateau` was initialized (1)", error.Message, StringComparison.Ordinal);
                scheduler.min_lrs.Add(0);
            }

            scheduler.step(1);
            Assert.Equal([0.125, each ? 0.0625 : 0.125], scheduler.get_last_lr());
        }
    }

    /// <summary>States of the other version of PyTorch are taken. Spec: R27.3.</summary>
    [Fact]
    public void States_of_another_version_are_taken()
    {
        using var scope = NewDisposeScope();
        foreach (var (from, to) in new[] { ("1.13", "2.10"), ("2.10", "1.13") })
        {
            var written = new OneCycleLR(Sgd(), 0.5, 20, reference: from);
            var taken = new OneCycleLR(Sgd(), 0.5, 30, reference: to);
            Enumerable.Range(0, 5).ToList().ForEach(_ => written.step());
            taken.load_state_dict(written.state_dict());
            written.step();
            taken.step();
            Assert.Equal(written.get_last_lr(), taken.get_last_lr());
        }
    }

    /// <summary>The functions under TorchSharp's names have the parameters and defaults of the constructors. Spec: R27.4.</summary>
    [Fact]
    public void Functions_are_the_constructors()
    {
        static string Signature(MethodBase method) => string.Join(
            ", ", method.GetParameters().Select(parameter => $"{parameter.ParameterType} {parameter.Name} = {parameter.DefaultValue}"));
        var functions = typeof(bridge.optim.lr_scheduler).GetMethods(BindingFlags.Public | BindingFlags.Static);
        Assert.Equal(15, functions.Select(function => function.Name).Distinct().Count());
        Assert.All(functions, function => Assert.Equal(function.Name, function.ReturnType.Name));
        Assert.Equal(
            functions.Select(function => function.ReturnType).Distinct().SelectMany(type => type.GetConstructors()).Select(Signature).Order(),
            functions.Select(Signature).Order());
        using var scope = NewDisposeScope();
        var scheduler = bridge.optim.lr_scheduler.OneCycleLR(Sgd(), [0.5], total_steps: 10);
        Assert.Equal(((optim.lr_scheduler.LRScheduler)scheduler).get_last_lr(), scheduler.get_last_lr());
    }

    /// <summary>Step a case to its end or its failure, and go on from what was saved in the middle.</summary>
    private static void Check(JsonElement entry)
    {
        using var scope = NewDisposeScope();
        var found = new SchedulerCase(entry);
        List<double[]> rates = [], momentums = [];
        Vectors.Check(entry, () => Run(found, rates, momentums));
        Assert.Equal(found.Rates, rates);
        Assert.Equal(found.Momentums ?? momentums, momentums);
        if (found.Saved is { } saved)
        {
            var done = saved.GetProperty("steps").GetInt32();
            var scheduler = found.Make(found.Optimizer());
            var optimizer = found.Optimizer(saved.GetProperty("groups"));
            scheduler.load_state_dict((Dictionary<string, object?>)SchedulerCase.Tree(saved.GetProperty("state"))!);
            ((Optimizer)scheduler.optimizer).load_state_dict(((Optimizer)optimizer).state_dict());
            foreach (var (step, expected) in found.Steps.Zip(found.Rates.Skip(1)).Skip(done))
            {
                SchedulerCase.Step(scheduler, step);
                Assert.Equal(expected, scheduler.optimizer.ParamGroups.Select(group => group.LearningRate));
            }
        }
    }

    /// <summary>Step a case, note rates and momentum, and compare the state where it was saved.</summary>
    private static void Run(SchedulerCase found, List<double[]> rates, List<double[]> momentums)
    {
        var optimizer = found.Optimizer();
        var scheduler = found.Make(optimizer);
        for (var done = 0; ; done++)
        {
            rates.Add([.. optimizer.ParamGroups.Select(group => group.LearningRate)]);
            momentums.Add(SchedulerCase.Momentum(optimizer));
            Assert.Equal(rates[^1], scheduler.get_last_lr());
            if (found.Saved is { } saved && saved.GetProperty("steps").GetInt32() == done)
            {
                Same.Trees(Sorted(SchedulerCase.Tree(saved.GetProperty("state"))), Sorted(scheduler.state_dict()));
                Assert.All(saved.Items("groups").Zip(optimizer.ParamGroups), pair => Compare(pair.First, (ParamGroup)pair.Second));
            }

            if (done == found.Steps.Count)
            {
                return;
            }

            SchedulerCase.Step(scheduler, found.Steps[done]);
        }
    }

    /// <summary>Compare the entries of a group with those that were saved.</summary>
    private static void Compare(JsonElement saved, ParamGroup group)
        => Assert.All(saved.EnumerateObject().Where(entry => entry.Name != "momentum"), entry => Assert.Equal(entry.Value.GetDouble(), group[entry.Name]));

    /// <summary>Sort the names of a state, and make numbers alike.</summary>
    private static object? Sorted(object? tree) => tree switch
    {
        Dictionary<string, object?> entries => entries.OrderBy(pair => pair.Key, StringComparer.Ordinal).ToDictionary(pair => pair.Key, pair => Sorted(pair.Value)),
        List<object?> items => items.ConvertAll(Sorted),
        long number => (double)number,
        _ => tree,
    };

    /// <summary>Make an optimizer of one group.</summary>
    internal static SGD Sgd() => new([new Parameter(zeros(1))], lr: 0.5);
}
