using BridgeSharp.Optim;
using TorchSharp;
using Xunit;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>What schedulers refuse, in PyTorch's words and in those of both languages.</summary>
[Collection(nameof(Serial))]
public sealed class SchedulerRefusalTests
{
    /// <summary>Schedulers of another optimizer are refused in PyTorch's words. Spec: R27.2.</summary>
    [Fact]
    public void Schedulers_of_another_optimizer_are_refused()
    {
        using var scope = NewDisposeScope();
        var (one, other) = (SchedulerTests.Sgd(), SchedulerTests.Sgd());
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
        Assert.Throws<DivideByZeroException>(() => new OneCycleLR(SchedulerTests.Sgd(), 0.5, 10, pct_start: 0.1));
        foreach (var scheduler in new Scheduler[] { new ConstantLR(SchedulerTests.Sgd(), 0, 1), new StepLR(SchedulerTests.Sgd(), 0), new PolynomialLR(SchedulerTests.Sgd(), 1, -1), new CosineAnnealingLR(SchedulerTests.Sgd(), 0) })
        {
            Assert.True(scheduler.MayFail);
            Assert.Throws<DivideByZeroException>(scheduler.step);
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
        var scheduler = new MultiStepLR(SchedulerTests.Sgd(), [3]);
        var state = scheduler.state_dict();
        var changed = new MultiStepLR(SchedulerTests.Sgd(), [4], 0.5).state_dict();
        changed[key] = value;
        Assert.Equal(text, Assert.Throws<ArgumentException>(() => scheduler.load_state_dict(changed)).Message);
        Same.Trees(state, scheduler.state_dict());
    }

    /// <summary>Another number of schedulers is refused, and functions of Python are too. Spec: R27.3.</summary>
    [Fact]
    public void States_of_other_schedulers_are_refused()
    {
        using var scope = NewDisposeScope();
        var optimizer = SchedulerTests.Sgd();
        var chained = new ChainedScheduler([new ConstantLR(optimizer), new ExponentialLR(optimizer, 0.5)]);
        var one = new ChainedScheduler([new ConstantLR(optimizer)]).state_dict();
        var error = Assert.Throws<ArgumentException>(() => chained.load_state_dict(one));
        Assert.Equal("load_state_dict: _schedulers of ChainedScheduler: expected 2 states, got 1", error.Message);
        var callable = new Dictionary<string, object?> { ["lr_lambdas"] = new List<object?> { new Dictionary<string, object?> { ["rate"] = 2 } } };
        Assert.Throws<ArgumentException>(() => new LambdaLR(optimizer, epoch => 1).load_state_dict(callable));
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
        Assert.Equal(text, Assert.Throws<ArgumentException>(() => Schedulers.create(name, SchedulerTests.Sgd(), options)).Message);
    }

    /// <summary>Descriptions without a name and other references are refused. Spec: R27.4.</summary>
    [Fact]
    public void Other_descriptions_and_references_are_refused()
    {
        using var scope = NewDisposeScope();
        var described = new Dictionary<string, object?> { ["schedulers"] = new object[] { new Dictionary<string, object?> { ["gamma"] = 0.5 } } };
        var error = Assert.Throws<ArgumentException>(() => Schedulers.create("ChainedScheduler", SchedulerTests.Sgd(), described));
        Assert.Equal("scheduler: expected the name of a scheduler, got ['gamma']", error.Message);
        error = Assert.Throws<ArgumentException>(() => Schedulers.create("LinearLR", SchedulerTests.Sgd(), reference: "3.0"));
        Assert.Equal("LinearLR: expected reference 2.10 or 1.13, got 3.0", error.Message);
    }
}
