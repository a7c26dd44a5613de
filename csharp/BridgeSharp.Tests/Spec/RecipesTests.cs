using System.Text.Json;
using System.Text.Json.Nodes;
using BridgeSharp.Models;
using BridgeSharp.Models.Recipes;
using TorchSharp;
using Xunit;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Whole jobs and their options.</summary>
[Collection(nameof(Serial))]
public sealed class RecipesTests : IDisposable
{
    private readonly IdxFolder folder = new();

    /// <summary>Write the data set that the vectors describe.</summary>
    public RecipesTests()
    {
        foreach (var stem in new[] { "train", "t10k" })
        {
            folder.Write(stem, [10, 28, 28], i => 31 * i % 251, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        }
    }

    public static TheoryData<string> Limits => Vectors.Names("options");

    public static TheoryData<string> Jobs => Vectors.Names("recipe");

    /// <summary>Remove the data set.</summary>
    public void Dispose() => folder.Dispose();

    /// <summary>Defaults, limits and what follows from options are those of the vectors. Spec: R14.1.</summary>
    [Theory]
    [MemberData(nameof(Limits))]
    public void Option_vectors_hold(string name)
    {
        var entry = Vectors.Find("options", name);
        Vectors.Check(entry, () =>
        {
            var options = Made(entry).Checked();
            foreach (var (member, value) in entry.Members("expected"))
            {
                var actual = typeof(Options).GetProperty(member)!.GetValue(options);
                Assert.True(JsonNode.DeepEquals(JsonSerializer.SerializeToNode(value), JsonSerializer.SerializeToNode(actual)), $"{member}: {actual}");
            }
        });
    }

    /// <summary>Weights, batches and steps are those of the vectors. Spec: R14.2, R14.3, R10.4.</summary>
    [Theory]
    [MemberData(nameof(Jobs))]
    public void Recipe_vectors_hold(string name)
    {
        var entry = Vectors.Find("recipe", name);
        using var recipe = new FashionLeNet(Made(entry) with { data = folder.Name });
        Assert.Equal(entry.GetProperty("steps_per_epoch").GetInt64(), recipe.steps_per_epoch);
        Assert.Equal(entry.GetProperty("planned_steps").GetInt64(), recipe.planned_steps);
        Assert.Equal(entry.GetProperty("initial").GetString(), recipe.digest());

        var steps = Enumerable.Range(0, (int)recipe.planned_steps).Select(_ => recipe.step()).ToList();

        Assert.Equal(Enumerable.Range(1, steps.Count), steps.Select(step => (int)step.number));
        Assert.Equal(entry.Items("samples").Select(item => item.GetInt64()), steps.Select(step => step.samples));
        Assert.Equal(entry.Items("batches").Select(item => item.GetString()), steps.Select(step => step.batch));
        Assert.All(steps, step => Assert.True(double.IsFinite(step.loss)));
        Assert.NotEqual(entry.GetProperty("initial").GetString(), recipe.digest());
    }

    /// <summary>However often it fails, the batch is the same, and nothing of it is left. Spec: R14.4.</summary>
    [Theory]
    [MemberData(nameof(Jobs))]
    public void A_step_that_fails_is_repeated(string name)
    {
        var entry = Vectors.Find("recipe", name);
        var options = Made(entry) with { data = folder.Name };
        using var recipe = new FashionLeNet(options);
        using var other = new FashionLeNet(options);
        var bad = new Stack<string>();
        ((LeNet)recipe.trainer.model).register_forward_pre_hook((_, input) => bad.TryPop(out var text) ? throw new ArgumentException(text) : input);

        foreach (var batch in entry.Items("batches"))
        {
            bad.Push("worn");
            bad.Push("torn");
            foreach (var text in new[] { "torn", "worn" })
            {
                Assert.Contains(text, Assert.Throws<ReplicaException>(recipe.step).Message, StringComparison.Ordinal);
            }

            var step = recipe.step();
            Assert.Equal((batch.GetString(), other.step().loss), (step.batch, step.loss));
        }

        Assert.Equal(other.digest(), recipe.digest());
    }

    /// <summary>Accuracy is the share of samples that are right. Spec: R8.4, R14.2.</summary>
    [Fact]
    public void Evaluate_counts_what_is_right()
    {
        using var scope = NewDisposeScope();
        using var recipe = new FashionLeNet(new Options { data = folder.Name, batch = 4 });
        using var test = new Data.FashionMnist(folder.Name, train: false, float64);
        var (images, labels) = test.batch(arange(10));
        var right = ((Tensor)recipe.trainer.predict(images)).argmax(1).eq(labels).to(float64);
        var (all, three) = (right.mean().item<double>(), right.narrow(0, 0, 3).mean().item<double>());
        var before = Same.Live();

        Assert.Equal((all, three, all), (recipe.evaluate(), recipe.evaluate(3), recipe.evaluate(99)));
        Assert.Equal(before, Tensor.TotalCount);
    }

    private static Options Made(JsonElement entry)
    {
        var given = JsonObject.Create(entry.GetProperty("options"))!;
        if (given["lr"] is { } lr)
        {
            given["lr"] = JsonSerializer.SerializeToNode(Vectors.Number(lr.Deserialize<JsonElement>()), Json);
        }

        return given.Deserialize<Options>(Json)!;
    }

    private static readonly JsonSerializerOptions Json = new() { NumberHandling = System.Text.Json.Serialization.JsonNumberHandling.AllowNamedFloatingPointLiterals };
}
