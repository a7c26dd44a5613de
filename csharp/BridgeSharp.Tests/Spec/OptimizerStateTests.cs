using System.Collections;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static BridgeSharp.Tests.Spec.OptimizerMakers;
using static TorchSharp.torch;
using Optim = BridgeSharp.Optim;

namespace BridgeSharp.Tests.Spec;

/// <summary>States of optimizers that are taken, or refused.</summary>
[Collection(nameof(Serial))]
public sealed class OptimizerStateTests
{
    /// <summary>Loading copies: the two optimizers go on apart, and one may take its own state. Spec: R9.9.</summary>
    [Fact]
    public void Loading_copies()
    {
        using var scope = NewDisposeScope();
        var (source, target) = (Stepped(), Stepped());
        target.load_state_dict(source.state_dict());
        var before = Moment(target).clone();
        source.step();
        Same.Trees(before, Moment(target));
        target.load_state_dict(target.state_dict());
        Same.Trees(before, Moment(target));
    }

    /// <summary>A state without entries is taken: SGD without momentum, Adam before its first step. Spec: R9.9.</summary>
    [Theory]
    [MemberData(nameof(OptimizerMakers.Names), MemberType = typeof(OptimizerMakers))]
    public void An_empty_state_is_taken(string name)
    {
        using var scope = NewDisposeScope();
        using var source = Create(name, [new Parameter(ones(2))]);
        using var target = Create(name, [new Parameter(ones(2))], new() { ["lr"] = 0.5 });
        target.load_state_dict(source.state_dict());
        Assert.Equal(source.param_groups[0].lr, target.param_groups[0].lr);
        Assert.Equal(name == "adagrad" ? 1 : 0, ((IDictionary)target.state_dict()["state"]!).Count);
    }

    /// <summary>What does not fit is refused, and nothing changes. Spec: R9.9.</summary>
    [Fact]
    public void What_does_not_fit_is_refused()
    {
        using var scope = NewDisposeScope();
        var optimizer = Stepped();
        var before = Moment(optimizer).clone();
        void Refused<T>(string text, Action<IDictionary> damage)
            where T : Exception
        {
            var state = optimizer.state_dict();
            damage(state);
            Assert.Equal(text, Assert.Throws<T>(() => optimizer.load_state_dict(state)).Message);
            Same.Trees(before, Moment(optimizer));
        }

        static IDictionary Group(IDictionary state) => (IDictionary)((IList)state["param_groups"]!)[0]!;
        static IDictionary Entries(IDictionary state) => (IDictionary)((IDictionary)state["state"]!)[0L]!;
        Refused<ArgumentException>("loaded state dict has a different number of parameter groups", state => ((IList)state["param_groups"]!).Clear());
        Refused<ArgumentException>(
            "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
            state => Group(state)["params"] = new List<object?> { 0L, 1L });
        Refused<KeyNotFoundException>("load_state_dict: expected state, got param_groups", state => state.Remove("state"));
        Refused<KeyNotFoundException>(
            "load_state_dict: expected eps in group 0, got lr, betas, weight_decay, amsgrad, maximize, foreach, capturable, differentiable, fused, decoupled_weight_decay",
            state => Group(state).Remove("eps"));
        Refused<ArgumentException>("optimizer: expected lr as a number, got fast", state => Group(state)["lr"] = "fast");
        Refused<ArgumentException>("optimizer: expected lr as a number, got a tensor", state => Group(state)["lr"] = tensor(0.5));
        Refused<ArgumentException>("optimizer: expected betas as two numbers, got 0.5", state => Group(state)["betas"] = 0.5);
        Refused<ArgumentException>(
            "load_state_dict: expected exp_avg of shape (2,) for parameter 0, got (3,)", state => Entries(state)["exp_avg"] = ones(3));
        Refused<ArgumentException>(
            "load_state_dict: expected exp_avg of shape (2,) for parameter 0, got 1", state => Entries(state)["exp_avg"] = 1L);
        Refused<ArgumentException>(
            "load_state_dict: expected states of the parameters of the groups, got one of 7",
            state => ((IDictionary)state["state"]!)[7L] = Entries(state));
    }

    /// <summary>A state that lacks what an option needs is refused at the step, before anything moves. Spec: R9.9.</summary>
    [Fact]
    public void A_state_that_lacks_an_entry_is_refused_before_the_step()
    {
        using var scope = NewDisposeScope();
        var optimizer = Stepped();
        var parameter = optimizer.parameters().Single();
        var before = parameter.detach().clone();
        ((Optim.Adam.ParamGroup)optimizer.param_groups[0]).amsgrad = true;
        var error = Assert.Throws<KeyNotFoundException>(() => optimizer.step());
        Assert.Equal("Adam: expected max_exp_avg_sq in the state of parameter 0, got step, exp_avg, exp_avg_sq", error.Message);
        Same.Trees(before, parameter.detach());
    }

    /// <summary>Steps that an earlier PyTorch wrote as numbers are taken, and options that it lacked get their defaults. Spec: R9.7, R9.9.</summary>
    [Fact]
    public void States_of_an_earlier_pytorch_are_taken()
    {
        using var scope = NewDisposeScope();
        var source = Stepped("rmsprop", "1.13");
        var target = Stepped("rmsprop", "2.10");
        target.load_state_dict(source.state_dict());
        var entries = (IDictionary)((IDictionary)target.state_dict()["state"]!)[0L]!;
        Assert.Equal((float32, 1f), (((Tensor)entries["step"]!).dtype, ((Tensor)entries["step"]!).item<float>()));
        Assert.Equal(false, target.param_groups[0]["capturable"]);
    }

    private static Optim.Optimizer Stepped(string name = "adam", string reference = "2.10")
    {
        var optimizer = Create(name, [new Parameter(ones(2)) { grad = ones(2) }], reference: reference);
        optimizer.step();
        return optimizer;
    }

    private static Tensor Moment(Optim.Optimizer optimizer)
        => (Tensor)((IDictionary)((IDictionary)optimizer.state_dict()["state"]!)[0L]!)["exp_avg"]!;
}
