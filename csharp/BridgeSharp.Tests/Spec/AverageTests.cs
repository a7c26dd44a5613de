using System.Text.Json;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static BridgeSharp.bridge;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Reducing gradients.</summary>
[Collection(nameof(Serial))]
public sealed class AverageTests
{
    public static TheoryData<string> Cases => Vectors.Names("average");

    /// <summary>Gradients and refusals are those of the vectors. Spec: R5.1, R5.2, R5.3, R5.4, R5.5, R5.6, R5.7.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("average", name);
        var dtype = entry.Optional("dtype")?.GetString() ?? "float64";
        var replicas = entry.Items("gradients").Select(gradients => Replica(entry, gradients, dtype)).ToList();
        List<double>? weights = entry.TryGetProperty("weights", out var given) ? [.. given.EnumerateArray().Select(Vectors.Number)] : null;
        Vectors.Check(entry, () =>
        {
            average(
                replicas,
                weights,
                entry.Optional("reduction")?.GetString() ?? "weighted",
                entry.Optional("broadcast")?.GetBoolean() ?? true);
            foreach (var (replica, expected) in replicas.Zip(entry.Items("expected")))
            {
                Same.Trees(
                    expected.EnumerateObject().Select(member => Gradient(member.Value, dtype)).ToList(),
                    replica.parameters().Select(parameter => parameter.grad).ToList());
            }
        });
    }

    /// <summary>Gradients are as before where weights are refused. Spec: R5.5.</summary>
    [Fact]
    public void Refusal_changes_nothing()
    {
        using var scope = NewDisposeScope();
        var replicas = WithGradients(1, 3);

        Assert.Throws<ArgumentException>(() => average(replicas, [0, 0]));

        Assert.Equal([1, 3], replicas.Select(replica => replica.First.grad!.item<double>()));
    }

    /// <summary>Changing the result of one replica leaves those of the others. Spec: R5.6.</summary>
    [Fact]
    public void Every_replica_gets_a_copy_of_its_own()
    {
        using var scope = NewDisposeScope();
        var replicas = WithGradients(1, 3, 5);

        average(replicas);
        replicas[0].First.grad!.zero_();

        Assert.Equal([0, 3, 3], replicas.Select(replica => replica.First.grad!.item<double>()));
    }

    /// <summary>Not even NaN, the gradient of a mean over nothing. Spec: R5.1.</summary>
    [Theory]
    [InlineData(0, 1)]
    [InlineData(1, 0)]
    public void Nothing_comes_from_a_weight_of_0(int first, int second)
    {
        using var scope = NewDisposeScope();
        var replicas = replicate(new Tied(), [CPU, CPU]);
        foreach (var (replica, index) in replicas.Zip([first, second]))
        {
            replica.First.weight.grad = full_like(replica.First.weight, index == 0 ? 2 : double.NaN);
        }

        average(replicas, [1 - first, 1 - second]);

        Assert.All(replicas, replica => Assert.Equal(2, replica.First.weight.grad!.max().item<float>()));
    }

    /// <summary>A parameter in two places counts once. Spec: R5.1.</summary>
    [Fact]
    public void Tied_parameter_is_reduced_once()
    {
        using var scope = NewDisposeScope();
        var replicas = replicate(new Tied(), [CPU, CPU]);
        foreach (var (replica, gradient) in replicas.Zip([1.0, 3.0]))
        {
            replica.First.weight.grad = full_like(replica.First.weight, gradient);
        }

        average(replicas);

        Assert.All(replicas, replica => Assert.Equal(2, replica.Second.weight.grad!.max().item<float>()));
    }

    /// <summary>The weighted mean of sparse gradients is sparse, on every replica. Spec: R5.7.</summary>
    [Theory]
    [InlineData(ScalarType.Float64)]
    [InlineData(ScalarType.Float32)]
    [InlineData(ScalarType.BFloat16)]
    public void Sparse_gradients_stay_sparse(ScalarType dtype)
    {
        using var scope = NewDisposeScope();
        var replicas = Embeddings(3, dtype);

        average(replicas, [1, 2, 1]);

        foreach (var gradient in replicas.Select(replica => replica.weight!.grad!))
        {
            Assert.True(gradient.is_sparse);
            Assert.Equal(dtype, gradient.dtype);
            Assert.Equal([0.5f, 1, 0.5f, 0, 1], Column(gradient));
        }
    }

    /// <summary>Where the gradient of one replica is dense the sum is, in any order. Spec: R5.7.</summary>
    [Theory]
    [InlineData(0)]
    [InlineData(1)]
    public void Sparse_and_dense_gradients_add_up_to_a_dense_one(int dense)
    {
        using var scope = NewDisposeScope();
        var replicas = Embeddings(2, ScalarType.Float64);
        replicas[dense].weight!.grad = replicas[dense].weight!.grad!.to_dense();

        average(replicas, reduction: "sum");

        Assert.Equal([2, 2, 0, 0, 2], Column(replicas[1].weight!.grad!));
    }

    /// <summary>A frozen parameter has no gradient afterwards either. Spec: R5.4.</summary>
    [Fact]
    public void Frozen_parameters_are_left_alone()
    {
        using var scope = NewDisposeScope();
        var model = nn.Linear(1, 1);
        model.bias!.requires_grad_(false);
        var replicas = replicate(model, [CPU, CPU]);
        foreach (var replica in replicas)
        {
            replica.call(ones(1, 1)).sum().backward();
        }

        average(replicas);

        Assert.All(replicas, replica => Assert.Null(replica.bias!.grad));
        Assert.All(replicas, replica => Assert.NotNull(replica.weight!.grad));
    }

    /// <summary>No tensor is left behind. Spec: R5.1.</summary>
    [Fact]
    public void Nothing_is_left()
    {
        using var scope = NewDisposeScope();
        var replicas = WithGradients(1, 3, 5);
        var before = Same.Live();

        average(replicas);

        Assert.Equal(before, Tensor.TotalCount);
    }

    /// <summary>Make embeddings with sparse gradients, of other rows each.</summary>
    private static List<Embedding> Embeddings(int count, ScalarType dtype)
    {
        var replicas = Enumerable.Range(0, count).Select(_ => nn.Embedding(5, 2, sparse: true).to(dtype)).ToList();
        for (var index = 0; index < count; index++)
        {
            replicas[index].call(tensor(new long[] { index, 4, index })).sum().backward();
        }

        return replicas;
    }

    private static float[] Column(Tensor gradient) => (gradient.is_sparse ? gradient.to_dense() : gradient).to(float32)[.., 0].contiguous().data<float>().ToArray();

    private static List<Net> WithGradients(params double[] gradients) => [.. gradients.Select(gradient =>
    {
        var replica = new Net([("w", zeros(1, dtype: float64))]);
        replica.First.grad = tensor(new[] { gradient });
        return replica;
    })];

    private static Net Replica(JsonElement entry, JsonElement gradients, string dtype)
    {
        var values = gradients.EnumerateObject().Select(member => (member.Name, Value: Gradient(member.Value, dtype))).ToList();
        var replica = new Net(values.Select(pair => (pair.Name, (pair.Value ?? Shaped(entry, pair.Name, dtype)).zeros_like())));
        foreach (var (parameter, (_, value)) in replica.parameters().Zip(values))
        {
            parameter.grad = value;
        }

        return replica;
    }

    /// <summary>Find a gradient of a parameter, for its shape; one that has none anywhere has one value.</summary>
    private static Tensor Shaped(JsonElement entry, string name, string dtype) => entry.Items("gradients")
        .Select(gradients => Gradient(gradients.GetProperty(name), dtype)).FirstOrDefault(value => value is not null) ?? zeros(1, dtype: Vectors.Dtypes[dtype]);

    private static Tensor? Gradient(JsonElement value, string dtype) => value.ValueKind == JsonValueKind.Null ? null : Vectors.Tensor(value, dtype);
}
