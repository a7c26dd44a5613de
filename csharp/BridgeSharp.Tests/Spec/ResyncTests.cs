using System.Text.Json;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Giving every replica the state of replica 0.</summary>
[Collection(nameof(Serial))]
public sealed class ResyncTests
{
    public static TheoryData<string> Cases => Vectors.Names("resync");

    /// <summary>States and refusals are those of the vectors, and a refusal changes nothing. Spec: R6.1, R6.2, R6.4.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("resync", name);
        var buffers = entry.Optional("buffers")?.EnumerateArray().Select(item => item.GetString()).ToList() ?? [];
        var whole = entry.Optional("whole")?.EnumerateArray().Select(item => item.GetString()).ToList() ?? [];
        var replicas = entry.Items("states").Select(state =>
        {
            var split = state.EnumerateObject().Select(member => (member.Name, Read(member))).ToLookup(member => buffers.Contains(member.Name));
            return new Net(split[false], split[true]);
        }).ToList();

        Vectors.Check(entry, () => resync(replicas, entry.Optional("policy")?.GetString() ?? "first"));

        var expected = entry.Optional("expected") is null ? entry.Items("states") : entry.Items("expected");
        foreach (var (state, replica) in expected.Zip(replicas))
        {
            var actual = StateDict.Of(replica);
            Assert.Equal(state.EnumerateObject().Select(member => member.Name), actual.Keys);
            Same.Trees(state.EnumerateObject().Select(Read).ToList(), actual.Values.ToList());
        }

        Tensor Read(JsonProperty member) => Vectors.Tensor(member.Value, whole.Contains(member.Name) ? "int64" : "float64");
    }

    /// <summary>Momentum and options are those of the first, in storage of their own. Spec: R6.5.</summary>
    [Fact]
    public void Optimizers_take_the_state_of_the_first()
    {
        using var scope = NewDisposeScope();
        var replicas = replicate(nn.Linear(2, 2), [CPU, CPU, CPU]);
        var optimizers = replicas.Select(replica => new Optim.SGD(replica.parameters(), lr: 0.1, momentum: 0.9)).ToList();
        replicas[0].call(ones(1, 2)).sum().backward();
        optimizers[0].step();
        optimizers[0].ParamGroups.Single().LearningRate = 0.5;

        resync([.. replicas], optimizers: [.. optimizers]);

        Assert.All(optimizers, optimizer => Assert.Equal(0.5, optimizer.ParamGroups.Single().LearningRate));
        replicas[1].weight.grad = zeros(2, 2);
        var weight = replicas[1].weight.detach().clone();
        optimizers[1].step();
        Same.Trees(weight.add(full(2, 2, 0.9f), alpha: -0.5), replicas[1].weight.detach());
        replicas[2].weight.grad = zeros(2, 2);
        optimizers[2].step();
        Same.Trees(replicas[1].weight.detach() - weight, replicas[2].weight.detach() - weight);
        var error = Assert.Throws<ArgumentException>(() => resync([.. replicas], optimizers: [.. optimizers.Take(2)]));
        Assert.Equal("resync: expected 3 optimizers, one per replica, got 2", error.Message);
    }

    /// <summary>Both optimizers go on to the same bits, whatever the dtype. Spec: R6.5.</summary>
    [Theory]
    [InlineData("SGD", ScalarType.Float32)]
    [InlineData("Adam", ScalarType.Float64)]
    [InlineData("Adam", ScalarType.BFloat16)]
    [InlineData("AdamW", ScalarType.Float32)]
    [InlineData("RMSProp", ScalarType.Float32)]
    public void State_of_optimizers_is_copied_bit_for_bit(string name, ScalarType dtype)
    {
        using var scope = NewDisposeScope();
        var replicas = replicate(nn.Linear(2, 2).to(dtype), [CPU, CPU]);
        var optimizers = replicas.Select(replica => Made(replica.parameters())).ToList();
        for (var i = 0; i < 3; i++)
        {
            Step(0, i);
        }

        resync([.. replicas], optimizers: optimizers);
        for (var i = 0; i < 3; i++)
        {
            Step(0, i);
            Step(1, i);
        }

        Same.Trees(replicas[0].weight.detach(), replicas[1].weight.detach());
        Same.Trees(replicas[0].bias!.detach(), replicas[1].bias!.detach());

        void Step(int index, int seed)
        {
            foreach (var parameter in replicas[index].parameters())
            {
                parameter.grad = linspace(-1, seed, parameter.numel(), dtype: dtype).reshape(parameter.shape);
            }

            optimizers[index].step();
        }

        torch.optim.Optimizer Made(IEnumerable<Parameter> parameters) => name switch
        {
            "SGD" => torch.optim.SGD(parameters, 0.1, 0.9),
            "Adam" => new Optim.Adam(parameters, amsgrad: true),
            "AdamW" => torch.optim.AdamW(parameters, 0.1),
            _ => torch.optim.RMSProp(parameters, 0.1, momentum: 0.5),
        };
    }

    /// <summary>Buffers that are not persistent are those of each replica, under every policy. Spec: R6.4.</summary>
    [Theory]
    [InlineData("first")]
    [InlineData("mean")]
    [InlineData("each")]
    public void Buffers_that_are_not_persistent_stay(string policy)
    {
        using var scope = NewDisposeScope();
        var replicas = replicate(new Tied(), [CPU, CPU]);
        replicas[1].Scratch.fill_(5);

        resync(replicas, policy);

        Assert.Equal([1f, 5f], replicas.Select(replica => replica.Scratch[0].item<float>()));
    }

    /// <summary>The state is copied: what replica 0 does later stays with it. Spec: R6.1.</summary>
    [Fact]
    public void Storage_stays_apart()
    {
        using var scope = NewDisposeScope();
        var replicas = replicate(nn.Linear(2, 2), [CPU, CPU]);
        replicas[0].weight.detach().fill_(3);

        resync(replicas);
        replicas[0].weight.detach().fill_(4);

        Assert.Equal([3, 3, 3, 3], replicas[1].weight.data<float>().ToArray());
    }

    /// <summary>Counters of batch norm are those of replica 0. Spec: R6.1.</summary>
    [Fact]
    public void Integer_counters_are_copied()
    {
        using var scope = NewDisposeScope();
        var replicas = replicate(nn.BatchNorm1d(2), [CPU, CPU]);
        replicas[0].call(randn(4, 2));

        resync(replicas);

        Assert.All(replicas, replica => Assert.Equal(1, replica.num_batches_tracked!.item<long>()));
        Same.Trees(replicas[0].running_mean, replicas[1].running_mean);
    }

    /// <summary>Parameters, persistent buffers, then children, in the order of registration. Spec: R6.3.</summary>
    [Fact]
    public void Order_of_a_state_is_that_of_pytorch()
    {
        using var model = new Mixed(1);
        string[] own = ["weight", "bias", "mean", "count"];
        string[] norm = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"];

        Assert.Equal([.. own, .. own.Select(name => $"child.{name}"), .. norm.Select(name => $"last.{name}")], StateDict.Of(model).Keys);
    }

    /// <summary>No tensor is left behind. Spec: R6.1.</summary>
    [Fact]
    public void Nothing_is_left()
    {
        using var scope = NewDisposeScope();
        var replicas = replicate(new Tied(), [CPU, CPU]);
        var before = Same.Live();

        resync(replicas);

        Assert.Equal(before, Tensor.TotalCount);
    }

    private sealed class Mixed : nn.Module
    {
        public Mixed(int depth)
            : base(nameof(Mixed))
        {
            if (depth > 0)
            {
                register_module("child", new Mixed(depth - 1));
                register_module("last", nn.BatchNorm1d(1));
            }

            register_buffer("scratch", zeros(1), persistent: false);
            register_buffer("mean", zeros(1));
            register_parameter("weight", new Parameter(zeros(1)));
            register_buffer("count", tensor(0L));
            register_parameter("bias", new Parameter(zeros(1)));
        }
    }
}
