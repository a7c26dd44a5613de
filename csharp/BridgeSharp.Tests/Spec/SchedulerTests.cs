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

    /// <summary>Schedulers of another optimizer are refused in PyTorch's words. Spec: R27.2.</summary>
    [Fact]
    public void Schedulers_of_another_optimizer_are_refused()
    {
        using var scope = NewDisposeScope();
        var (one, other) = (Sgd(), Sgd());
        Scheduler[] mixed = [new ConstantLR(one), new ExponentialLR(other, 0.5)];
        var texts = new Dictionary<Action, string>
        {
            [() => _ = new SequentialLR(one, mixed, [3])] =
                "SequentialLR expects all schedulers to belong to the same optimizer, but got scheduler ExponentialLR at index 1 has SGD, which is different from SGD.",
            [() => _ = new ChainedScheduler(mixed)] =
                "ChainedScheduler expects all schedulers to belong to the same optimizer, but got scheduler ExponentialLR at index 1 has SGD, which is different from SGD.",
            [() => _ = new SequentialLR(one, mixed, [3], reference: "1.13")] =
                "Sequential Schedulers expects all schedulers to belong to the same optimizer, but got schedulers at index 1 to be different than the optimizer passed in.",
            [() => _ = new ChainedScheduler(mixed, reference: "1.13")] =
                "ChainedScheduler expects all schedulers to belong to the same optimizer, but got schedulers at index 0 and 1 to be different",
        };
        Assert.All(texts, pair => Assert.Equal(pair.Value, Assert.Throws<ArgumentException>(pair.Key).Message));
    }

    /// <summary>What Python cannot divide is refused, and not infinite. Spec: R27.2.</summary>
    [Fact]
    public void Divisions_by_zero_are_refused()
    {
        using var scope = NewDisposeScope();
        Assert.Throws<DivideByZeroException>(() => new OneCycleLR(Sgd(), 0.5, 10, pct_start: 0.1));
        foreach (var scheduler in new Scheduler[] { new ConstantLR(Sgd(), 0, 1), new StepLR(Sgd(), 0), new PolynomialLR(Sgd(), 1, -1), new CosineAnnealingLR(Sgd(), 0) })
        {
            Assert.True(scheduler.MayFail);
            Assert.Throws<DivideByZeroException>(scheduler.step);
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

    /// <summary>A state with values of another type is refused, and changes nothing. Spec: R27.3.</summary>
    [Theory]
    [InlineData("milestones", 3, "load_state_dict: milestones of MultiStepLR: expected a dictionary, got 3")]
    [InlineData("gamma", "much", "load_state_dict: gamma of MultiStepLR: expected a number, got much")]
    [InlineData("last_epoch", 1.5, "load_state_dict: last_epoch of MultiStepLR: expected a whole number, got 1.5")]
    [InlineData("base_lrs", null, "load_state_dict: base_lrs of MultiStepLR: expected a list, got None")]
    public void Bad_states_are_refused(string key, object? value, string text)
    {
        using var scope = NewDisposeScope();
        var scheduler = new MultiStepLR(Sgd(), [3]);
        var state = scheduler.state_dict();
        var changed = new MultiStepLR(Sgd(), [4], 0.5).state_dict();
        changed[key] = value;
        Assert.Equal(text, Assert.Throws<ArgumentException>(() => scheduler.load_state_dict(changed)).Message);
        Same.Trees(state, scheduler.state_dict());
    }

    /// <summary>Another number of schedulers is refused, and functions of Python are too. Spec: R27.3.</summary>
    [Fact]
    public void States_of_other_schedulers_are_refused()
    {
        using var scope = NewDisposeScope();
        var optimizer = Sgd();
        var chained = new ChainedScheduler([new ConstantLR(optimizer), new ExponentialLR(optimizer, 0.5)]);
        var one = new ChainedScheduler([new ConstantLR(optimizer)]).state_dict();
        var error = Assert.Throws<ArgumentException>(() => chained.load_state_dict(one));
        Assert.Equal("load_state_dict: _schedulers of ChainedScheduler: expected 2 states, got 1", error.Message);
        var callable = new Dictionary<string, object?> { ["lr_lambdas"] = new List<object?> { new Dictionary<string, object?> { ["rate"] = 2 } } };
        Assert.Throws<ArgumentException>(() => new LambdaLR(optimizer, epoch => 1).load_state_dict(callable));
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

    /// <summary>Names, options and references that there are not are refused. Spec: R27.4.</summary>
    [Theory]
    [InlineData("Step", "gamma", "scheduler: expected one of LambdaLR, MultiplicativeLR, StepLR, MultiStepLR, ConstantLR, LinearLR, ExponentialLR, SequentialLR, CosineAnnealingLR, ChainedScheduler, ReduceLROnPlateau, CyclicLR, CosineAnnealingWarmRestarts, OneCycleLR, PolynomialLR, got 'Step'")]
    [InlineData("StepLR", "step", "scheduler: expected options of StepLR (step_size, gamma, last_epoch), got 'step'")]
    [InlineData("StepLR", "gamma", "scheduler: expected option step_size of StepLR, got ['gamma']")]
    public void Other_names_and_options_are_refused(string name, string option, string text)
    {
        using var scope = NewDisposeScope();
        var options = new Dictionary<string, object?> { [option] = 0.5 };
        Assert.Equal(text, Assert.Throws<ArgumentException>(() => Schedulers.create(name, Sgd(), options)).Message);
    }

    /// <summary>Descriptions without a name and other references are refused. Spec: R27.4.</summary>
    [Fact]
    public void Other_descriptions_and_references_are_refused()
    {
        using var scope = NewDisposeScope();
        var described = new Dictionary<string, object?> { ["schedulers"] = new object[] { new Dictionary<string, object?> { ["gamma"] = 0.5 } } };
        var error = Assert.Throws<ArgumentException>(() => Schedulers.create("ChainedScheduler", Sgd(), described));
        Assert.Equal("scheduler: expected the name of a scheduler, got ['gamma']", error.Message);
        error = Assert.Throws<ArgumentException>(() => Schedulers.create("LinearLR", Sgd(), reference: "3.0"));
        Assert.Equal("LinearLR: expected reference 2.10 or 1.13, got 3.0", error.Message);
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

    private static SGD Sgd() => new([new Parameter(zeros(1))], lr: 0.5);
}
