using TorchSharp;
using Xunit;
using static BridgeSharp.Tests.Spec.TrainerTests;
using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Tests.Spec;

/// <summary>The trainer over many batches: epochs, evaluations, states, and what they leave behind.</summary>
[Collection(nameof(Serial))]
public sealed class TrainerEpochTests
{
    /// <summary>Each epoch has every batch, and its mean loss is by samples. Spec: R8.3.</summary>
    [Fact]
    public void Fit_goes_over_the_batches_again_and_again()
    {
        using var scope = NewDisposeScope();
        using var trainer = Linear(2, lr: 0);
        List<(int, double)> steps = [];
        (object, object)[] batches = [(ones(3, 1), ones(3, 1)), (full(1, 1, 3f), full(1, 1, 3f))];

        var history = trainer.fit(batches, epochs: 2, on_step: (number, loss) => steps.Add((number, loss)));

        Assert.Equal([(1, 1.0), (2, 9.0), (3, 1.0), (4, 9.0)], steps);
        Assert.Equal([3.0, 3.0], history);
    }

    /// <summary>An epoch without batches is refused. Spec: R8.3.</summary>
    [Fact]
    public void Fit_and_evaluate_refuse_no_batches()
    {
        using var trainer = Linear(1);
        Assert.Equal("Trainer: expected at least 1 batch, got 0", Assert.Throws<ArgumentException>(() => trainer.fit([])).Message);
        Assert.Equal("Trainer: expected at least 1 batch, got 0", Assert.Throws<ArgumentException>(() => trainer.evaluate([])).Message);
    }

    /// <summary>Modules that were in evaluation mode stay in it, the others train again. Spec: R8.4.</summary>
    [Fact]
    public void Predict_restores_every_mode()
    {
        using var scope = NewDisposeScope();
        var model = nn.Sequential(nn.Linear(1, 1), nn.Dropout(0.5), nn.BatchNorm1d(1));
        model.children().ElementAt(1).eval();
        using var trainer = new Trainer(model, new Optim.SGD(model.parameters()), (outputs, targets) => mse_loss(outputs, targets), Cpus(2));
        var counter = model.buffers().Last().item<long>();

        var outputs = (Tensor)trainer.predict(ones(3, 1));

        Assert.False(outputs.requires_grad);
        Assert.Equal(counter, model.buffers().Last().item<long>());
        AssertModes();
        Assert.Throws<ReplicaException>(() => trainer.predict(ones(3, 2)));
        AssertModes();

        void AssertModes() => Assert.Equal([true, true, false, true], model.modules().Prepend(model).Select(module => module.training));
    }

    /// <summary>The measure is averaged over all samples, and changes no state. Spec: R8.4.</summary>
    [Fact]
    public void Evaluate_averages_by_samples()
    {
        using var scope = NewDisposeScope();
        using var trainer = Linear(2);
        (object, object)[] batches = [(ones(3, 1), ones(3, 1)), (ones(1, 1), full(1, 1, 3f))];

        Assert.Equal(3, trainer.evaluate(batches));
        Assert.Equal(1.5, trainer.evaluate(batches, (_, targets) => ((Tensor)targets).mean()));
        Assert.Equal(0, Weight(trainer.model));
        Assert.Null(trainer.model.parameters().Single().grad);
    }

    /// <summary>The mean over batches is a plain sum in their order, without compensation. Spec: R8.4.</summary>
    [Fact]
    public void Means_are_summed_in_order()
    {
        using var scope = NewDisposeScope();
        using var trainer = Linear(1);
        var batches = new[] { 9007199254740992.0, 1, -9007199254740992 }
            .Select(value => ((object)ones(1, 1), (object)tensor(new[] { 3 * value })));

        Assert.Equal(0, trainer.evaluate(batches, (_, target) => ((Tensor)target).sum()));
    }

    /// <summary>A loaded state is every replica's, and a wrong one is refused by key. Spec: R6.1, R6.2.</summary>
    [Fact]
    public void Load_state_dict_reaches_every_replica()
    {
        using var scope = NewDisposeScope();
        using var trainer = Linear(3);

        trainer.load_state_dict(new Dictionary<string, Tensor> { ["weight"] = full(1, 1, 2.5f) });

        Assert.Equal([2.5f, 2.5f, 2.5f], ((Tensor)trainer.predict(ones(3, 1))).data<float>().ToArray());
        var error = Assert.Throws<InvalidOperationException>(() => trainer.load_state_dict(new Dictionary<string, Tensor>()));
        Assert.Contains("Missing key(s) in state_dict: \"weight\"", error.Message, StringComparison.Ordinal);
    }

    /// <summary>Steps, predictions and evaluations leave no tensor behind. Spec: R8.2, R8.4.</summary>
    [Fact]
    public void Nothing_is_left()
    {
        using var scope = NewDisposeScope();
        var model = nn.Sequential(nn.Linear(1, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1));
        using var trainer = new Trainer(model, new Optim.Adam(model.parameters()), (outputs, targets) => mse_loss(outputs, targets), Cpus(3));
        var (inputs, targets) = (randn(7, 1), randn(7, 1));
        trainer.step(inputs, targets);
        var before = Same.Live();

        for (var i = 0; i < 50; i++)
        {
            trainer.step(inputs, targets);
            trainer.evaluate([(inputs, targets)]);
            ((Tensor)trainer.predict(inputs)).Dispose();
        }

        Assert.Equal(before, Tensor.TotalCount);
    }
}
