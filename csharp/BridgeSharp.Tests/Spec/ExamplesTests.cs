using System.Text.Json;
using BridgeSharp.Models.Examples;
using Xunit;

namespace BridgeSharp.Tests.Spec;

/// <summary>The examples, each as a whole.</summary>
[Collection(nameof(Serial))]
public sealed class ExamplesTests
{
    public static TheoryData<string> Settings => Vectors.Names("example");

    public static TheoryData<string> Names => [.. Catalog.names];

    /// <summary>Defaults and limits are those of the vectors. Spec: R23.1.</summary>
    [Theory]
    [MemberData(nameof(Settings))]
    public void Setting_vectors_hold(string name)
    {
        var entry = Vectors.Find("example", name);
        Vectors.Check(entry, () =>
        {
            var setting = entry.GetProperty("setting").Deserialize<Setting>()!.Checked();
            foreach (var (member, value) in entry.Members("expected"))
            {
                Assert.Equal($"{value}", $"{typeof(Setting).GetProperty(member)!.GetValue(setting)}");
            }
        });
    }

    /// <summary>The error lists the names that there are. Spec: R23.1.</summary>
    [Fact]
    public void Another_name_is_refused()
    {
        var error = Assert.Throws<ArgumentException>(() => Catalog.find("lenet"));
        Assert.Equal($"example: expected one of {string.Join(", ", Catalog.names)}, got lenet", error.Message);
    }

    /// <summary>It trains, and ends where one undivided model ends, but for rounding. Spec: R23.3.</summary>
    [Theory]
    [MemberData(nameof(Names))]
    public void Replicas_are_one_model(string name)
    {
        var lines = 0;
        var steps = name == "data_parallel" ? 2 : 6;
        var result = Catalog.find(name)(new Setting { steps = steps, replicas = 3, dtype = "float64" }, _ => lines++);
        Assert.True(lines >= steps);
        Assert.Equal(steps, result.losses.Count);
        Assert.All([.. result.losses, .. result.numbers.Values], number => Assert.True(double.IsFinite(number)));
        var differences = result.numbers.Where(pair => pair.Key.Contains("difference", StringComparison.Ordinal)).ToList();
        Assert.NotEmpty(differences);
        Assert.All(differences, pair => Assert.True(pair.Value < 1e-10, $"{pair.Key}: {pair.Value}"));
        Dispose(result);
    }

    /// <summary>The same setting leaves the same bits, run after run. Spec: R23.2.</summary>
    [Theory]
    [MemberData(nameof(Names))]
    public void Again_is_the_same(string name)
    {
        var (one, other) = (Run(name, 2), Run(name, 2));
        Assert.Equal(one.losses, other.losses);
        Same.Trees(one.state, other.state);
        Dispose(one);
        Dispose(other);
    }

    /// <summary>However many steps, no more tensors are left. Spec: R23.3.</summary>
    [Theory]
    [MemberData(nameof(Names))]
    public void Steps_leave_no_tensors(string name)
    {
        Assert.Equal(Left(1), Left(3));

        long Left(int steps)
        {
            var before = Same.Live();
            Dispose(Run(name, steps));
            return Same.Live() - before;
        }
    }

    private static Result Run(string name, int steps)
        => Catalog.find(name)(new Setting { steps = steps, dtype = "float64" }, _ => { });

    private static void Dispose(Result result)
    {
        foreach (var tensor in result.state.Values)
        {
            tensor.Dispose();
        }
    }
}
