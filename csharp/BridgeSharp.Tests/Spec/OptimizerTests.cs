using System.Collections;
using System.Text.Json;
using BridgeSharp.Optim;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static BridgeSharp.Tests.Spec.OptimizerMakers;
using static TorchSharp.torch;
using Optim = BridgeSharp.Optim;

namespace BridgeSharp.Tests.Spec;

/// <summary>Optimizers by name, and what they do.</summary>
[Collection(nameof(Serial))]
public sealed class OptimizerTests
{
    public static TheoryData<string> Refusals => Vectors.Names("optimizer");

    public static TheoryData<string> Cases => Vectors.Names("optimizers");

    public static TheoryData<string> OldCases => Vectors.Names("optimizers-1.13");

    public static TheoryData<string> Every => OptimizerMakers.Names;

    /// <summary>Names and options that are refused are those of the vectors. Spec: R9.1.</summary>
    [Theory]
    [MemberData(nameof(Refusals))]
    public void Refusals_hold(string name)
    {
        using var parameter = new Parameter(zeros(1));
        var entry = Vectors.Find("optimizer", name);
        Vectors.Check(entry, () => Create(entry.GetProperty("optimizer").GetString()!, [parameter], Options(entry)));
    }

    /// <summary>Parameters and states are PyTorch 2.10's, before and after the state was saved and loaded. Spec: R9.2, R9.3, R9.4, R9.5, R9.8, R9.9.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Every_optimizer_holds(string name) => Check(Vectors.Find("optimizers", name), "2.10");

    /// <summary>Parameters and states are PyTorch 1.13's where they are asked for. Spec: R9.2, R9.3, R9.4, R9.5, R9.8, R9.9.</summary>
    [Theory]
    [MemberData(nameof(OldCases))]
    public void Every_optimizer_of_pytorch_1_13_holds(string name) => Check(Vectors.Find("optimizers-1.13", name), "1.13");

    /// <summary>Another reference is refused, and options that PyTorch 1.13 lacks are refused for it. Spec: R9.1, R9.7.</summary>
    [Fact]
    public void References_are_kept()
    {
        using var parameter = new Parameter(zeros(1));
        var error = Assert.Throws<ArgumentException>(() => Create("adam", [parameter], reference: "3.0"));
        Assert.Equal("Adam: expected reference 2.10 or 1.13, got 3.0", error.Message);
        error = Assert.Throws<ArgumentException>(() => new Optim.NAdam([parameter], maximize: true, reference: "1.13"));
        Assert.Equal("NAdam: expected maximize with reference 2.10 alone, got it with 1.13", error.Message);
        error = Assert.Throws<ArgumentException>(() => Create("radam", [parameter], new() { ["maximize"] = true }, "1.13"));
        Assert.Equal("optimizer: expected options of radam (lr, betas, eps, weight_decay), got 'maximize'", error.Message);
    }

    /// <summary>Betas may be a tuple, an array or a list of two numbers, and nothing else. Spec: R9.1.</summary>
    [Fact]
    public void Betas_are_two_numbers()
    {
        using var parameter = new Parameter(zeros(1));
        foreach (var betas in new object[] { (0.5, 0.75), new[] { 0.5, 0.75 }, new List<object> { 0.5, 0.75 } })
        {
            using var optimizer = Create("adam", [parameter], new() { ["betas"] = betas });
            Assert.Equal((0.5, 0.75), ((Optim.Adam.ParamGroup)optimizer.param_groups[0]).betas);
        }

        var error = Assert.Throws<ArgumentException>(() => Create("adam", [parameter], new() { ["betas"] = 0.5 }));
        Assert.Equal("optimizer: expected betas as two numbers, got 0.5", error.Message);
        error = Assert.Throws<ArgumentException>(() => Create("adam", [parameter], new() { ["lr"] = "fast" }));
        Assert.Equal("optimizer: expected lr as a number, got fast", error.Message);
    }

    /// <summary>Gradients are None after zero_grad, or zeros where that is asked for. Spec: R9.4.</summary>
    [Theory]
    [MemberData(nameof(Every))]
    public void Zero_grad_leaves_none(string name)
    {
        using var scope = NewDisposeScope();
        var parameter = new Parameter(ones(1)) { grad = ones(1) };
        var optimizer = Create(name, [parameter]);
        optimizer.zero_grad(set_to_none: false);
        Assert.Equal(0, parameter.grad!.item<float>());
        optimizer.zero_grad();
        Assert.Null(parameter.grad);
    }

    /// <summary>Stepping leaves no tensor behind, and disposing takes the state along. Spec: R9.4.</summary>
    [Theory]
    [MemberData(nameof(Every))]
    public void Steps_leave_nothing(string name)
    {
        using var scope = NewDisposeScope();
        var parameter = new Parameter(ones(3));
        var before = Same.Live();
        using (var optimizer = Create(name, [parameter], name == "lbfgs" ? new() { ["history_size"] = 2 } : null))
        {
            Steps(optimizer, parameter);
            var held = Same.Live();
            Steps(optimizer, parameter);
            Assert.Equal(held, Same.Live());
        }

        Assert.Equal(before, Same.Live());
    }

    private static void Steps(Optim.Optimizer optimizer, Parameter parameter)
    {
        for (var i = 0; i < 5; i++)
        {
            using var scope = NewDisposeScope();
            optimizer.step(() =>
            {
                optimizer.zero_grad();
                var loss = (parameter * parameter * parameter * parameter).sum();
                loss.backward();
                return loss;
            });
            optimizer.zero_grad();
        }
    }

    /// <summary>A step returns the loss of its closure, which runs with gradients. Spec: R9.4.</summary>
    [Theory]
    [MemberData(nameof(Every))]
    public void Closures_are_called(string name)
    {
        using var scope = NewDisposeScope();
        var parameter = new Parameter(ones(1));
        using var mode = no_grad();
        using var loss = Create(name, [parameter]).step(() =>
        {
            parameter.grad = null;
            var value = (parameter * 2).sum();
            value.backward();
            return value;
        });
        Assert.Equal(2, loss.item<float>());
        Assert.NotEqual(1, parameter.item<float>());
    }

    /// <summary>Step with each set of gradients, save, load, and step on.</summary>
    private static void Check(JsonElement entry, string reference)
    {
        using var scope = NewDisposeScope();
        var expected = Vectors.Tree(entry.GetProperty("state"))!;
        var relative = entry.Optional("relative")?.GetDouble() ?? 0;
        var parameters = Parameters(entry);
        using var optimizer = Make(entry, reference, parameters);
        Steps(entry, "gradients", optimizer, parameters);
        CheckParameters(entry, "expected", parameters);
        CheckState(expected, optimizer.state_dict(), relative);

        var twins = Parameters(entry, "expected");
        using var resumed = Make(entry, reference, twins);
        resumed.load_state_dict((IDictionary)expected);
        CheckState(optimizer.state_dict()["param_groups"], resumed.state_dict()["param_groups"], 0);
        Steps(entry, "more", resumed, twins);
        CheckParameters(entry, "resumed", twins);
    }

    private static Optim.Optimizer Make(JsonElement entry, string reference, Dictionary<string, Parameter> parameters)
    {
        var name = entry.GetProperty("optimizer").GetString()!;
        var optimizer = Create(name, [parameters["w"], parameters["u"]], Options(entry), reference);
        optimizer.add_param_group(Groups[name]([parameters["b"]], entry.GetProperty("group").GetProperty("lr").GetDouble()));
        return optimizer;
    }

    private static void Steps(JsonElement entry, string member, Optim.Optimizer optimizer, Dictionary<string, Parameter> parameters)
    {
        foreach (var gradients in entry.Items(member))
        {
            foreach (var (name, parameter) in parameters)
            {
                parameter.grad = gradients.Optional(name) is { ValueKind: not JsonValueKind.Null } value
                    ? Vectors.Tensor(value, entry.GetProperty("dtype").GetString()!)
                    : null;
            }

            optimizer.step();
        }
    }
}
