using System.Text.Json;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static BridgeSharp.Tests.Spec.OptimizerMakers;
using static TorchSharp.torch;
using Optim = BridgeSharp.Optim;

namespace BridgeSharp.Tests.Spec;

/// <summary>LBFGS, which calls a closure.</summary>
[Collection(nameof(Serial))]
public sealed class LBFGSTests
{
    public static TheoryData<string> Cases => Vectors.Names("lbfgs");

    public static TheoryData<string> OldCases => Vectors.Names("lbfgs-1.13");

    /// <summary>Losses, calls, parameters and states are PyTorch 2.10's. Spec: R9.6, R9.9.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void LBFGS_holds(string name) => Check(Vectors.Find("lbfgs", name), "2.10");

    /// <summary>Losses, calls, parameters and states are PyTorch 1.13's. Spec: R9.6, R9.9.</summary>
    [Theory]
    [MemberData(nameof(OldCases))]
    public void LBFGS_of_pytorch_1_13_holds(string name) => Check(Vectors.Find("lbfgs-1.13", name), "1.13");

    /// <summary>It has one group, needs a closure, and knows one line search. Spec: R9.6.</summary>
    [Fact]
    public void What_it_cannot_do_is_refused()
    {
        using var scope = NewDisposeScope();
        var (one, other) = (new Parameter(ones(1)), new Parameter(ones(1)));
        const string OneGroup = "LBFGS doesn't support per-parameter options (parameter groups)";
        var error = Assert.Throws<ArgumentException>(() => new Optim.LBFGS([new([one]), new Optim.LBFGS.ParamGroup([other])]));
        Assert.Equal(OneGroup, error.Message);
        var optimizer = new Optim.LBFGS([one], line_search_fn: "armijo");
        error = Assert.Throws<ArgumentException>(() => optimizer.add_param_group(new Optim.LBFGS.ParamGroup([other])));
        Assert.Equal(OneGroup, error.Message);
        Assert.Single(optimizer.param_groups);
        error = Assert.Throws<ArgumentException>(() => optimizer.step());
        Assert.Equal("LBFGS: expected a closure that evaluates the model, got None", error.Message);
        var search = Assert.Throws<InvalidOperationException>(() => optimizer.step(() => Tilted([(one, ones(1))])));
        Assert.Equal("only 'strong_wolfe' is supported", search.Message);
    }

    /// <summary>The state that was saved half-way goes on as if it had not been. Spec: R9.6, R9.9.</summary>
    [Theory]
    [InlineData(null)]
    [InlineData("strong_wolfe")]
    public void A_saved_state_goes_on(string? search)
    {
        using var scope = NewDisposeScope();
        var tilt = tensor([0.75, -0.5, 1.0]);
        var parameters = new[] { new Parameter(ones(3, dtype: float64)), new Parameter(ones(3, dtype: float64)) };
        var optimizers = parameters.Select(own => new Optim.LBFGS([own], lr: 0.25, max_iter: 3, line_search_fn: search)).ToList();
        optimizers[0].step(() => Tilted([(parameters[0], tilt)]));
        optimizers[1].load_state_dict(optimizers[0].state_dict());
        using (no_grad())
        {
            parameters[1].copy_(parameters[0]);
        }

        foreach (var (own, optimizer) in parameters.Zip(optimizers))
        {
            optimizer.step(() => Tilted([(own, tilt)]));
        }

        Same.Trees(parameters[0].detach(), parameters[1].detach());
        Assert.NotEqual(1, parameters[0][0].item<double>());
    }

    private static Tensor Tilted(IEnumerable<(Parameter Parameter, Tensor Tilt)> terms)
    {
        Tensor loss = 0;
        foreach (var (parameter, tilt) in terms)
        {
            parameter.grad = null;
            loss = loss + ((parameter * parameter * parameter * parameter * 0.25) + (parameter * tilt)).sum();
        }

        loss.backward();
        return loss;
    }

    private static void Check(JsonElement entry, string reference)
    {
        using var scope = NewDisposeScope();
        var (dtype, relative) = (entry.GetProperty("dtype").GetString()!, entry.GetProperty("relative").GetDouble());
        var parameters = Parameters(entry);
        using var optimizer = Create("lbfgs", parameters.Values, Options(entry), reference);
        var calls = 0;
        foreach (var (tilt, loss) in entry.Items("tilts").Zip(entry.Items("losses")))
        {
            var tilts = tilt.EnumerateObject().Select(named => (parameters[named.Name], Vectors.Tensor(named.Value, dtype))).ToList();
            using var first = optimizer.step(() =>
            {
                calls++;
                return Tilted(tilts);
            });
            CheckState(loss.GetDouble(), first.ToDouble(), relative);
        }

        Assert.Equal(entry.GetProperty("calls").GetInt32(), calls);
        CheckParameters(entry, "expected", parameters);
        CheckState(Vectors.Tree(entry.GetProperty("state")), optimizer.state_dict(), relative);
    }
}
