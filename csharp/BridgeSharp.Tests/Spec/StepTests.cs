using System.Text.Json;
using TorchSharp;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Updating the parameters of all replicas.</summary>
[Collection(nameof(Serial))]
public sealed class StepTests
{
    public static TheoryData<string> Cases => Vectors.Names("step");

    /// <summary>Values and refusals are those of the vectors; no optimizer steps where one is refused. Spec: R7.1, R7.2, R7.3.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("step", name);
        var replicas = entry.Items("values").Select(value => new Net([("w", Vectors.Tensor(value))])).ToList();
        foreach (var (replica, gradient) in replicas.Zip(entry.Items("gradients")))
        {
            replica.First.grad = gradient.ValueKind == JsonValueKind.Null ? null : Vectors.Tensor(gradient);
        }

        var lr = entry.GetProperty("lr").GetDouble();
        var made = replicas.Select(replica => new Optim.SGD(replica.parameters(), lr)).ToList();
        var chosen = entry.GetProperty("optimizer");
        Vectors.Check(entry, () =>
        {
            if (chosen.ValueKind == JsonValueKind.Array)
            {
                step(replicas, chosen.EnumerateArray().Select(index => made[index.GetInt32()]).ToList());
            }
            else
            {
                step(replicas, made[chosen.GetInt32()]);
            }
        });

        var expected = entry.Optional("expected") is null ? entry.Items("values") : entry.Items("expected");
        Same.Trees(
            expected.Select(value => Vectors.Tensor(value)).ToList(), replicas.Select(replica => replica.First.detach()).ToList());
    }

    /// <summary>At least one replica is expected. Spec: R7.1.</summary>
    [Fact]
    public void No_replica_is_refused()
    {
        using var model = nn.Linear(1, 1);
        using var optimizer = new Optim.SGD(model.parameters(), lr: 1);

        Assert.Equal("step: expected at least 1 replica, got 0", Assert.Throws<ArgumentException>(() => step([], optimizer)).Message);
        Assert.Equal("step: expected at least 1 replica, got 0", Assert.Throws<ArgumentException>(() => step([], [])).Message);
    }

    /// <summary>The optimizer would move it twice in one step. Spec: R7.2.</summary>
    [Fact]
    public void A_parameter_twice_is_refused()
    {
        using var scope = NewDisposeScope();
        var model = nn.Linear(2, 1);
        using var optimizer = torch.optim.RMSProp([model.weight, model.bias!, model.weight]);

        Assert.Equal(
            "step: expected an optimizer that has every parameter once, got 1 of 3 again",
            Assert.Throws<ArgumentException>(() => step([model], optimizer)).Message);
    }

    /// <summary>One optimizer per replica and one for all give the same bits. Spec: R7.1, R7.3.</summary>
    [Fact]
    public void Modes_leave_the_same_parameters()
    {
        using var scope = NewDisposeScope();
        random.manual_seed(3);
        var model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(float64);

        var states = new[] { false, true }.SelectMany(all => Trained(replicate(model, [CPU, CPU])[1], all)).ToList();

        Assert.All(states, state => Same.Trees(states[0], state));
    }

    /// <summary>An optimizer may have some of replica 0's parameters. Spec: R7.2.</summary>
    [Fact]
    public void Parameters_that_the_optimizer_lacks_stay()
    {
        using var scope = NewDisposeScope();
        var model = nn.Linear(2, 1);
        var replicas = replicate(model, [CPU, CPU]);
        model.call(ones(1, 2)).sum().backward();
        var bias = model.bias!.detach().clone();

        step(replicas, new Optim.SGD([model.weight], lr: 1));

        Same.Trees(bias, model.bias.detach());
        Same.Trees(model.weight.detach(), replicas[1].weight.detach());
    }

    private static List<List<Tensor>> Trained(TorchSharp.Modules.Sequential model, bool all)
    {
        var replicas = replicate(model, [CPU, CPU, CPU]);
        var made = replicas.Select(replica => new Optim.Adam(replica.parameters(), lr: 0.05)).ToList();
        random.manual_seed(4);
        for (var i = 0; i < 5; i++)
        {
            foreach (var replica in replicas)
            {
                replica.zero_grad();
                replica.call(randn(3, 4, dtype: float64)).square().sum().backward();
            }

            average(replicas);
            if (all)
            {
                step(replicas, made);
            }
            else
            {
                step(replicas, made[0]);
            }
        }

        return [.. replicas.Select(replica => replica.parameters().Select(parameter => parameter.detach()).ToList())];
    }
}
