using BridgeSharp.Trace;
using TorchSharp;
using Xunit;
using static TorchSharp.torch;
using Record = BridgeSharp.Trace.Record;

namespace BridgeSharp.Tests.Spec;

/// <summary>What a trace keeps of tensors, and that it is written as the program runs.</summary>
[Collection(nameof(Serial))]
public sealed class TraceTests
{
    public static TheoryData<string> Cases => Vectors.Names("trace");

    /// <summary>Records of tensors are those of the vectors. Spec: R30.2.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        using var scope = NewDisposeScope();
        var entry = Vectors.Find("trace", name);
        var contents = Keeper.Observe(Given(entry), whole: false, out _);
        var summary = contents.summary;
        Assert.Equal(entry.Optional("digest")?.GetString() ?? contents.digest, contents.digest);
        Assert.Equal((entry.GetProperty("nan").GetInt64(), entry.GetProperty("inf").GetInt64()), (summary.nan, summary.infinite));
        Assert.Equal(Vectors.Number(entry.GetProperty("norm")), summary.norm);
        Assert.Equal(Vectors.Number(entry.GetProperty("min")), summary.minimum);
        Assert.Equal(Vectors.Number(entry.GetProperty("max")), summary.maximum);
        var projections = entry.GetProperty("projections");
        Assert.Equal(projections.ValueKind == System.Text.Json.JsonValueKind.Null ? null : projections.EnumerateArray().Select(Vectors.Number), summary.projections);
    }

    /// <summary>The words behind the signs are those that others publish for seed 0. Spec: R30.2.</summary>
    [Fact]
    public void Stream_is_splitmix64()
        => Assert.Equal([0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x6c45d188009454f], Enumerable.Range(0, 3).Select(Signs.Word));

    /// <summary>A tensor that is transposed, strided, sparse or needs a gradient has the record of its copy; no tensor is left. Spec: R30.2, R30.6.</summary>
    [Fact]
    public void Layout_does_not_count()
    {
        using var scope = NewDisposeScope();
        var table = arange(24, float32).reshape(4, 6).requires_grad_();
        var before = Same.Live();
        foreach (var view in new Func<Tensor>[] { () => table.t(), () => table[.., 1..5], () => table[0].expand(3, 6), () => table.detach().to_sparse() })
        {
            using var inner = NewDisposeScope();
            using var mode = no_grad();
            var own = view();
            Assert.Equal(Text(Keeper.Observe((own.is_sparse ? own.to_dense() : own).clone().contiguous(), false, out _)), Text(Keeper.Observe(own, false, out _)));
        }

        Assert.Equal(before, Tensor.TotalCount);
    }

    /// <summary>The summary of a complex tensor is that of its parts. Spec: R30.2.</summary>
    [Fact]
    public void A_complex_tensor_counts_as_two()
    {
        using var scope = NewDisposeScope();
        var parts = tensor(new[] { 1.0f, -2.0f, 0.5f, 4.0f }).reshape(2, 2);
        var (both, plain) = (Keeper.Observe(view_as_complex(parts), false, out _), Keeper.Observe(parts, false, out _));
        Assert.Equal((plain.digest, plain.summary.norm, "complex64"), (both.digest, both.summary.norm, both.dtype));
        Assert.Equal(plain.summary.projections, both.summary.projections);
    }

    /// <summary>A tensor without values is a record that was not observed. Spec: R30.5.</summary>
    [Fact]
    public void What_cannot_be_taken_down_says_why()
    {
        using var scope = NewDisposeScope();
        var entry = new Keeper(null, null).Entry(new Record(0, "loss", 0, "loss", "loss"), empty(3, device: META));
        Assert.NotNull(entry.Record.unobserved);
        Assert.Null(entry.Record.tensor);
    }

    /// <summary>A tensor is kept whole where its name and step are asked for. Spec: R30.3.</summary>
    [Fact]
    public void Whole_tensors_lie_beside()
    {
        using var scope = NewDisposeScope();
        using var folder = new TraceFolder();
        var values = tensor(new[] { 0.5f, -1.25f });
        var keeper = new Keeper("fc1.*", [1]);
        using (var writer = new Writer(folder.Path, []))
        {
            writer.Write(from step in new[] { 0, 1 }
                         from name in new[] { "fc1.weight", "fc10.weight" }
                         select keeper.Entry(new Record(step, "step", 0, "parameter", name), values));
            writer.Close(2);
        }

        Assert.Equal([null, null, "tensors/00000002.bin", null], folder.Read().Select(line => (string?)line["file"]));
        Assert.Equal(values.bytes.ToArray(), File.ReadAllBytes(Path.Combine(folder.Path, "tensors", "00000002.bin")));
    }

    /// <summary>What was written can be read while the program runs, and a new trace replaces an old one. Spec: R30.3.</summary>
    [Fact]
    public void A_running_program_leaves_a_trace()
    {
        using var folder = new TraceFolder();
        using (var writer = new Writer(folder.Path, new() { ["language"] = "C#" }))
        {
            writer.Write([new Entry(new Record(0, "loss", 0, "loss", "größe") { value = double.NaN }, null)]);
            Assert.Equal(["größe"], folder.Read().Select(line => (string?)line["name"]));
            Assert.Equal("nan", (string?)folder.Read()[0]["value"]);
            Assert.DoesNotContain("\"end\"", File.ReadAllText(folder.File), StringComparison.Ordinal);
            writer.Close(1);
            writer.Close(1);
        }

        Assert.EndsWith("{\"end\":true,\"records\":1,\"steps\":1}\n", File.ReadAllText(folder.File), StringComparison.Ordinal);
        using var other = new Writer(folder.Path, []);
        Assert.Empty(folder.Read());
    }

    private static string Text(Contents contents)
        => $"{contents.digest} {string.Join(',', contents.shape)} {contents.summary.norm:R} {string.Join(' ', contents.summary.projections!)}";

    private static Tensor Given(System.Text.Json.JsonElement entry) => entry.Optional("ramp") is { } count
        ? (((arange(count.GetInt64()) * 7 % 64) - 32).to(float64) / 8).to(Vectors.Dtypes[entry.GetProperty("dtype").GetString()!])
        : (Tensor)Vectors.Tree(entry.GetProperty("tensor"))!;
}
