using System.Text.Json;
using BridgeSharp.Optim;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Optimizers by name, and what they do.</summary>
[Collection(nameof(Serial))]
public sealed class OptimizerTests
{
    public static TheoryData<string> Refusals => Vectors.Names("optimizer");

    public static TheoryData<string> SGD => Vectors.Names("sgd");

    public static TheoryData<string> Adam => Vectors.Names("adam");

    public static TheoryData<string> OldAdam => Vectors.Names("adam-1.13");

    /// <summary>Names and options that are refused are those of the vectors. Spec: R9.1.</summary>
    [Theory]
    [MemberData(nameof(Refusals))]
    public void Refusals_hold(string name)
    {
        using var parameter = new Parameter(zeros(1));
        var entry = Vectors.Find("optimizer", name);
        Vectors.Check(entry, () => Optimizers.create(entry.GetProperty("optimizer").GetString()!, [parameter], Options(entry)));
    }

    /// <summary>SGD gives the bits of PyTorch after every step. Spec: R9.2, R9.4.</summary>
    [Theory]
    [MemberData(nameof(SGD))]
    public void SGD_holds(string name) => Check("sgd", Vectors.Find("sgd", name));

    /// <summary>Adam gives the bits of PyTorch 2.10's formula. Spec: R9.3, R9.4.</summary>
    [Theory]
    [MemberData(nameof(Adam))]
    public void Adam_holds(string name) => Check("adam", Vectors.Find("adam", name));

    /// <summary>Adam gives the bits of PyTorch 1.13's formula. Spec: R9.3, R9.4.</summary>
    [Theory]
    [MemberData(nameof(OldAdam))]
    public void Adam_of_pytorch_1_13_holds(string name) => Check("adam", Vectors.Find("adam-1.13", name));

    /// <summary>Another reference is refused. Spec: R9.3.</summary>
    [Fact]
    public void Another_reference_is_refused()
    {
        using var parameter = new Parameter(zeros(1));
        var error = Assert.Throws<ArgumentException>(() => Optimizers.create("adam", [parameter], reference: "3.0"));
        Assert.Equal("Adam: expected reference 2.10 or 1.13, got 3.0", error.Message);
    }

    /// <summary>The learning rate is 0.001 unless it is given. Spec: R9.1.</summary>
    [Theory]
    [InlineData("sgd")]
    [InlineData("adam")]
    public void Defaults_are_those_of_pytorch(string name)
    {
        using var parameter = new Parameter(zeros(1));
        using var optimizer = Optimizers.create(name, [parameter]);
        Assert.Equal(1e-3, optimizer.ParamGroups.Single().LearningRate);
    }

    /// <summary>Betas may be a tuple, an array or a list of two numbers, and nothing else. Spec: R9.1.</summary>
    [Fact]
    public void Betas_are_two_numbers()
    {
        using var parameter = new Parameter(zeros(1));
        foreach (var betas in new object[] { (0.5, 0.75), new[] { 0.5, 0.75 }, new List<object> { 0.5, 0.75 } })
        {
            using var optimizer = (TorchSharp.Modules.Adam)Optimizers.create("adam", [parameter], new Dictionary<string, object> { ["betas"] = betas });
            var options = (TorchSharp.Modules.Adam.Options)optimizer.ParamGroups.Cast<TorchSharp.Modules.Adam.ParamGroup>().Single().Options;
            Assert.Equal((0.5, 0.75), (options.beta1, options.beta2));
        }

        var error = Assert.Throws<ArgumentException>(
            () => Optimizers.create("adam", [parameter], new Dictionary<string, object> { ["betas"] = 0.5 }));
        Assert.Equal("optimizer: expected betas as two numbers, got 0.5", error.Message);
    }

    /// <summary>Gradients are None after zero_grad. Spec: R9.4.</summary>
    [Theory]
    [InlineData("sgd")]
    [InlineData("adam")]
    public void Zero_grad_leaves_none(string name)
    {
        using var scope = NewDisposeScope();
        var parameter = new Parameter(ones(1)) { grad = ones(1) };
        Optimizers.create(name, [parameter]).zero_grad();
        Assert.Null(parameter.grad);
    }

    /// <summary>Stepping leaves no tensor behind. Spec: R9.2, R9.3.</summary>
    [Theory]
    [InlineData("sgd")]
    [InlineData("adam")]
    public void Steps_leave_nothing(string name)
    {
        using var scope = NewDisposeScope();
        var parameter = new Parameter(ones(3)) { grad = ones(3) };
        var options = new Dictionary<string, object> { ["weight_decay"] = 0.5, ["maximize"] = true };
        options.Add(name == "sgd" ? "momentum" : "amsgrad", name == "sgd" ? 0.5 : true);
        var optimizer = Optimizers.create(name, [parameter], options);
        optimizer.step();
        var before = Same.Live();

        for (var i = 0; i < 10; i++)
        {
            optimizer.step();
        }

        Assert.Equal(before, Tensor.TotalCount);
    }

    /// <summary>Step with each set of gradients, and compare the parameters after it.</summary>
    private static void Check(string optimizer, JsonElement entry)
    {
        using var scope = NewDisposeScope();
        var dtype = entry.GetProperty("dtype").GetString()!;
        var parameters = entry.Members("parameters").ToDictionary(member => member.Name, member => new Parameter(Vectors.Tensor(member.Value, dtype)));
        var reference = entry.Optional("reference")?.GetString() ?? "2.10";
        var stepper = Optimizers.create(optimizer, parameters.Values, Options(entry), reference);
        foreach (var (gradients, expected) in entry.Items("gradients").Zip(entry.Items("expected")))
        {
            foreach (var (name, parameter) in parameters)
            {
                var value = gradients.GetProperty(name);
                parameter.grad = value.ValueKind == JsonValueKind.Null ? null : Vectors.Tensor(value, dtype);
            }

            stepper.step();
            Assert.All(parameters, pair => Same.Within(
                Vectors.Tensor(expected.GetProperty(pair.Key), dtype), pair.Value.detach(), entry.Optional("relative")?.GetDouble() ?? 0));
        }
    }

    private static Dictionary<string, object> Options(JsonElement entry) => entry.Members("options").ToDictionary(
        member => member.Name,
        member => member.Value.ValueKind == JsonValueKind.String ? Vectors.Number(member.Value) : Vectors.Tree(member.Value)!);
}
