using BridgeSharp.Optim;
using TorchSharp;
using Xunit;
using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;
using SGD = BridgeSharp.Optim.SGD;

namespace BridgeSharp.Tests.Spec;

/// <summary>Schedulers in the trainer.</summary>
[Collection(nameof(Serial))]
public sealed class SchedulerTrainerTests
{
    private static readonly Dictionary<string, Func<optim.Optimizer, Scheduler>> Failing = new()
    {
        ["the end of a cycle"] = optimizer => new OneCycleLR(optimizer, 0.5, total_steps: 2),
        ["a function of the user's"] = optimizer => new LambdaLR(optimizer, update => update == 3 ? throw new TimeoutException() : 0.5),
        ["a division by zero"] = optimizer => new ConstantLR(optimizer, factor: 0, total_iters: 3),
        ["a chain, after its first part"] = optimizer => new ChainedScheduler([new MultiStepLR(optimizer, [1, 1, 3]), new OneCycleLR(optimizer, 0.5, total_steps: 2)]),
        ["a sequence, in its second part"] = optimizer => new SequentialLR(
            optimizer, [new ExponentialLR(optimizer, 0.5), new MultiplicativeLR(optimizer, epoch => epoch == 1 ? throw new TimeoutException() : 2)], [2]),
    };

    public static TheoryData<string> Failures => [.. Failing.Keys];

    /// <summary>A scheduler that fails is given back exactly, and so are parameters, rates and momentum. Spec: R27.5.</summary>
    [Theory]
    [MemberData(nameof(Failures))]
    public void A_scheduler_that_fails_is_given_back(string failure)
    {
        using var scope = NewDisposeScope();
        var model = nn.Linear(3, 2);
        using var trainer = Make(model, Failing[failure]);
        var scheduler = (Scheduler)trainer.schedulers.Single();
        Step(trainer);
        Step(trainer);
        var (state, rates, momentum, weight) = (scheduler.state_dict(), Rates(trainer), SchedulerCase.Momentum(trainer.optimizer), model.weight.clone());
        for (var attempt = 0; attempt < 2; attempt++)
        {
            var error = Assert.ThrowsAny<Exception>(() => Step(trainer));
            Assert.True(error is ArgumentException or TimeoutException or DivideByZeroException, error.ToString());
            Same.Trees(state, scheduler.state_dict());
            Assert.Equal(rates, Rates(trainer));
            Assert.Equal(momentum, SchedulerCase.Momentum(trainer.optimizer));
            Same.Trees(weight, model.weight);
        }
    }

    /// <summary>Without functions and metrics a scheduler cannot fail half-way, and parameters are not copied for it. Spec: R27.5.</summary>
    [Fact]
    public void Most_schedulers_cannot_fail()
    {
        using var scope = NewDisposeScope();
        var optimizer = optim.SGD(nn.Linear(3, 2).parameters(), 0.5);
        Scheduler[] plain =
        [
            new StepLR(optimizer, 3), new MultiStepLR(optimizer, [3]), new ConstantLR(optimizer), new LinearLR(optimizer),
            new ExponentialLR(optimizer, 0.5), new PolynomialLR(optimizer), new CosineAnnealingLR(optimizer, 3),
            new CosineAnnealingWarmRestarts(optimizer, 3), new CyclicLR(optimizer, 0.25, 0.5),
        ];
        Assert.All(plain, scheduler => Assert.False(scheduler.MayFail));
        Assert.False(new ChainedScheduler(plain).MayFail);
        Assert.True(new ChainedScheduler([.. plain, new LambdaLR(optimizer, epoch => 1)]).MayFail);
    }

    /// <summary>The trainer refuses a scheduler that needs a metric. Spec: R27.5.</summary>
    [Fact]
    public void The_trainer_has_no_metric()
    {
        using var scope = NewDisposeScope();
        foreach (var make in new Func<optim.Optimizer, optim.lr_scheduler.LRScheduler>[] { own => new ReduceLROnPlateau(own), own => optim.lr_scheduler.ReduceLROnPlateau(own) })
        {
            var error = Assert.Throws<ArgumentException>(() => Make(nn.Linear(3, 2), make));
            Assert.Equal("Trainer: expected a scheduler that steps without a metric, got ReduceLROnPlateau: step it yourself, after evaluate", error.Message);
        }
    }

    private static Trainer Make(TorchSharp.Modules.Linear model, Func<optim.Optimizer, optim.lr_scheduler.LRScheduler> scheduler) => new(
        model,
        new SGD(model.parameters(), 0.5, momentum: 0.5),
        (outputs, targets) => mse_loss(outputs, targets),
        TrainerTests.Cpus(2),
        new TrainerOptions { scheduler = scheduler });

    private static double Step(Trainer trainer) => trainer.step(ones(4, 3), zeros(4, 2));

    private static double[] Rates(Trainer trainer) => [.. trainer.optimizer.ParamGroups.Select(group => group.LearningRate)];
}
