using BridgeSharp.Optim;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static BridgeSharp.Tests.Spec.OptimizerMakers;
using static TorchSharp.torch;
using Adam = BridgeSharp.Optim.Adam;
using SGD = BridgeSharp.Optim.SGD;

namespace BridgeSharp.Tests.Spec;

/// <summary>Groups of parameters, names, tied parameters, and schedulers on them.</summary>
[Collection(nameof(Serial))]
public sealed class ParamGroupTests
{
    /// <summary>What a group does not set is the optimizer's; defaults are PyTorch's, not TorchSharp's. Spec: R9.1, R9.8.</summary>
    [Fact]
    public void Groups_take_the_optimizers_options()
    {
        using var scope = NewDisposeScope();
        var (one, other) = (new Parameter(ones(1)), new Parameter(ones(1)));
        using var optimizer = bridge.optim.AdamW([new Adam.ParamGroup([one]), new Adam.ParamGroup([other], lr: 0.5, beta1: 0.25, beta2: 0.5)], eps: 0.125);
        var (first, second) = ((Adam.ParamGroup)optimizer.param_groups[0], (Adam.ParamGroup)optimizer.param_groups[1]);
        Assert.Equal((1e-3, (0.9, 0.999), 0.125, 0.01, false), (first.lr, first.betas, first.eps, first.weight_decay, first.amsgrad));
        Assert.Equal((0.5, (0.25, 0.5), 0.125, 0.01, true), (second.lr, second.betas, second.eps, second.weight_decay, second.decoupled_weight_decay));
        var error = Assert.Throws<ArgumentException>(() => new Adam.ParamGroup([other], beta1: 0.5));
        Assert.Equal("ParamGroup: expected both numbers of betas, got one", error.Message);
    }

    /// <summary>No parameters, one in two groups, another class of group, names on one side and complex numbers are refused. Spec: R9.8.</summary>
    [Fact]
    public void Groups_that_do_not_fit_are_refused()
    {
        using var scope = NewDisposeScope();
        var (one, other) = (new Parameter(ones(1)), new Parameter(ones(1)));
        static void Refused(string text, Action run) => Assert.Equal(text, Assert.Throws<ArgumentException>(run).Message);
        Refused("optimizer got an empty parameter list", () => bridge.optim.SGD(Array.Empty<Parameter>()));
        Refused("optimizer got an empty parameter list", () => bridge.optim.SGD(Array.Empty<SGD.ParamGroup>()));
        Refused("optimizer got an empty parameter list", () => Create("adam", []));
        Refused("some parameters appear in more than one parameter group", () => bridge.optim.SGD([new SGD.ParamGroup([one]), new SGD.ParamGroup([other, one])]));
        using var optimizer = new SGD([one]);
        Refused("some parameters appear in more than one parameter group", () => optimizer.add_param_group(new SGD.ParamGroup([one])));
        Refused(
            "add_param_group: expected SGD.ParamGroup, got BridgeSharp.Optim.Adam+ParamGroup",
            () => optimizer.add_param_group(new Adam.ParamGroup([other])));
        Refused(
            "all optimizer param groups should be with/without names. cannot add param group with names to the optimizer",
            () => optimizer.add_param_group(new SGD.ParamGroup([other]) { param_names = ["other"] }));
        Refused("SGD: expected real parameters, got complex64 at index 0", () => bridge.optim.SGD([new Parameter(ones(1, dtype: complex64))]));
        Assert.Single(optimizer.param_groups);
    }

    /// <summary>A tied parameter, which TorchSharp lists twice, moves once; of its names it has the first. Spec: R9.8.</summary>
    [Fact]
    public void Tied_parameters_count_once()
    {
        using var scope = NewDisposeScope();
        var (embedding, linear) = (nn.Embedding(3, 2), nn.Linear(2, 3, hasBias: false));
        linear.weight = embedding.weight!;
        var model = nn.Sequential(("embedding", embedding), ("linear", linear));
        Assert.Equal(2, model.parameters().Count());
        var before = embedding.weight!.detach().clone();
        using var optimizer = bridge.optim.SGD(model.named_parameters(), 0.5);
        Assert.Equal(["embedding.weight"], optimizer.param_groups[0].param_names);
        embedding.weight.grad = ones(3, 2);
        optimizer.step();
        Same.Trees(before - 0.5, embedding.weight.detach());
        Assert.Single(new SGD(model.parameters()).parameters());
    }

    /// <summary>TorchSharp's schedulers move the rates; a second one starts from the rate before the first, as in PyTorch. Spec: R9.8.</summary>
    [Fact]
    public void Schedulers_of_torchsharp_move_the_rates()
    {
        using var scope = NewDisposeScope();
        using var optimizer = new SGD([new Parameter(ones(1))], lr: 0.5, momentum: 0.9);
        var first = optim.lr_scheduler.ConstantLR(optimizer, factor: 0.5, total_iters: 2);
        Assert.Equal(0.25, optimizer.param_groups[0].lr);
        optim.lr_scheduler.ExponentialLR(optimizer, 0.5);
        Assert.Equal(0.5, (double)optimizer.param_groups[0]["initial_lr"]!);
        first.step();
        first.step();
        Assert.Equal(0.5, optimizer.param_groups[0].lr);
        optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.2, base_momentum: 0.25, max_momentum: 0.75);
        Assert.Equal(0.75, ((SGD.ParamGroup)optimizer.param_groups[0]).momentum);
    }

    /// <summary>Sparse gradients give what dense ones give, where PyTorch takes them. Spec: R9.10.</summary>
    [Theory]
    [InlineData("sgd")]
    [InlineData("adagrad")]
    public void Sparse_gradients_are_taken(string name)
    {
        using var scope = NewDisposeScope();
        var indices = tensor(new long[] { 2, 0, 2 }).reshape(1, 3);
        var values = tensor(new[] { 1.0, -0.5, 2.0, 0.25, 0.5, 4.0 }).reshape(3, 2);
        var gradient = sparse_coo_tensor(indices, values, [4, 2]);
        List<Tensor> results = [];
        foreach (var own in new[] { gradient, gradient.to_dense() })
        {
            var parameter = new Parameter(ones(4, 2, dtype: float64));
            using var optimizer = Create(name, [parameter], new() { ["lr"] = 0.5 });
            for (var i = 0; i < 3; i++)
            {
                parameter.grad = own;
                optimizer.step();
            }

            results.Add(parameter.detach());
        }

        Same.Trees(results[1], results[0]);
        Assert.NotEqual(1, results[0][2, 0].item<double>());
    }

    /// <summary>Elsewhere they are refused with PyTorch's texts, before anything changes. Spec: R9.10.</summary>
    [Theory]
    [InlineData("adam", "2.10", "Adam does not support sparse gradients, please consider SparseAdam instead")]
    [InlineData("adamw", "2.10", "Adam does not support sparse gradients, please consider SparseAdam instead")]
    [InlineData("adamw", "1.13", "AdamW does not support sparse gradients")]
    [InlineData("rmsprop", "2.10", "RMSprop does not support sparse gradients")]
    [InlineData("rprop", "2.10", "Rprop does not support sparse gradients")]
    [InlineData("adagrad", "2.10", "weight_decay option is not compatible with sparse gradients")]
    [InlineData("sgd", "2.10", "add(sparse, dense) is not supported. Use add(dense, sparse) instead.")]
    public void Other_sparse_gradients_are_refused(string name, string reference, string text)
    {
        using var scope = NewDisposeScope();
        var (dense, sparse) = (new Parameter(ones(2)) { grad = ones(2) }, new Parameter(ones(2)) { grad = ones(2).to_sparse() });
        Dictionary<string, object> options = name is "sgd" or "adagrad" ? new() { ["weight_decay"] = 0.5 } : [];
        using var optimizer = Create(name, [dense, sparse], options, reference);
        var error = Assert.Throws<InvalidOperationException>(() => optimizer.step());
        Assert.Equal(text, error.Message);
        Same.Trees(ones(2), dense.detach());
    }
}
