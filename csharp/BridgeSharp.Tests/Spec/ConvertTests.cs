using BridgeSharp.Checkpoint;
using BridgeSharp.Conversion;
using BridgeSharp.Models;
using BridgeSharp.Parity;
using TorchSharp;
using Xunit;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Weights that go from file to file.</summary>
public sealed class ConvertTests : IDisposable
{
    /// <summary>One tensor "w": float32, shape (2, 1), values 0.5 and -1.25, as TorchSharp's Module.save writes.</summary>
    private static readonly byte[] Torchsharp = Convert.FromHexString("010177060202010000003f0000a0bf");

    private readonly CheckpointFolder folder = new();
    private readonly DisposeScope scope = NewDisposeScope();

    /// <inheritdoc/>
    public void Dispose()
    {
        scope.Dispose();
        folder.Dispose();
    }

    /// <summary>Names, dtypes, shapes, bits and order come back from each format. Spec: R29.1.</summary>
    [Theory]
    [InlineData("torch")]
    [InlineData("safetensors")]
    [InlineData("torchsharp")]
    [InlineData("tree")]
    public void Every_format_holds_all_weights(string kind)
    {
        var state = new OrderedDictionary<string, Tensor> { ["scalar"] = tensor(1.5), ["empty"] = empty(0, 200), ["é"] = ones(1) };
        foreach (var dtype in new[] { uint8, int8, int16, int32, int64, @bool, float16, bfloat16, float32, float64 })
        {
            state[Digest.dtype_name(dtype)] = tensor(new long[] { 1, 0, 1 }).to_type(dtype);
        }

        TorchFile.save(state, At("in.pt"));
        var plan = Converter.convert(At("in.pt"), At("mid"), kind);
        Assert.True(plan.written);
        Assert.Equal(kind, Formats.detect(At("mid")));
        _ = Converter.convert(At("mid"), At("out.pt"));
        var back = Load("out.pt");
        Assert.Equal(state.Keys, back.Keys);
        Assert.Equal(state.Keys, plan.rows.Select(row => row.target));
        Assert.Equal(Digest.digest(state), Digest.digest(back));
    }

    /// <summary>An extension that says nothing needs a format by name. Spec: R29.1.</summary>
    [Fact]
    public void Formats_have_extensions()
    {
        Assert.Equal(["torch", "torch", "safetensors", "torchsharp"], new[] { "a.PT", "a.pth", "a.safetensors", "a.dat" }.Select(path => Formats.format_for(path)));
        Refused("expected a format, or an extension of .pt, .pth, .safetensors, .dat, got '.bin'", () => Formats.format_for("a.bin"));
        Refused("got 'onnx'", () => Formats.format_for("a.pt", "onnx"));
    }

    /// <summary>A checkpoint gives its model, a part or all; formats of names alone refuse trees. Spec: R29.1.</summary>
    [Fact]
    public void A_tree_goes_whole_or_in_parts()
    {
        var optimizer = CheckpointFolder.Dict(
        [
            new("state", CheckpointFolder.Dict([new(0L, CheckpointFolder.Dict([new("exp_avg", ones(2))]))])),
            new("param_groups", new List<object?> { CheckpointFolder.Dict([new("lr", 0.5)]) }),
        ]);
        TreeFile.write(CheckpointFolder.Dict([new("model", Two()), new("optimizers", new List<object?> { optimizer }), new("step", 3L)]), At("run.safetensors"));
        _ = Converter.convert(At("run.safetensors"), At("out.pt"));
        Assert.Equal(Two().Keys, Load("out.pt").Keys);
        var plan = Converter.convert(At("run.safetensors"), At("out.pt"), part: "optimizers/0", force: true);
        Assert.Equal("[\"state\"][0][\"exp_avg\"]", Assert.Single(plan.rows).target);
        _ = Converter.convert(At("out.pt"), At("tree"), "tree");
        CheckpointFolder.Exact(optimizer, TreeFile.read(At("tree")));
        _ = Converter.convert(At("run.safetensors"), At("flat.dat"), part: "optimizers/0/state/0");
        Assert.Equal("exp_avg", Assert.Single(TorchsharpFile.load_torchsharp(At("flat.dat"))).Key);
        Refused("format safetensors, got a tree of state, param_groups: choose a part", () => Converter.convert(At("out.pt"), At("no.safetensors")));
        Refused("to rename or cast, got a tree", () => Converter.convert(At("out.pt"), At("no.pt"), prefix: "net."));
        Refused("expected '9' of part 'optimizers/9', got 1 items", () => Converter.convert(At("run.safetensors"), At("no.pt"), part: "optimizers/9"));
        Refused("expected 'x' of part 'x', got model, optimizers, step", () => Converter.convert(At("run.safetensors"), At("no.pt"), part: "x"));
        Assert.DoesNotContain(folder.Entries, entry => entry.StartsWith("no", StringComparison.Ordinal));
    }

    /// <summary>The bytes are those of TorchSharp's format, and its own modules read and write them. Spec: R29.2.</summary>
    [Fact]
    public void Torchsharp_files()
    {
        TorchsharpFile.save_torchsharp(new Dictionary<string, Tensor> { ["w"] = tensor(new[] { 0.5f, -1.25f }).reshape(2, 1) }, At("m.dat"));
        Assert.Equal(Torchsharp, File.ReadAllBytes(At("m.dat")));

        using var model = new LeNet();
        _ = model.save(At("own.dat"));
        var read = TorchsharpFile.load_torchsharp(At("own.dat"));
        Assert.Equal(Digest.digest(model.state_dict()), Digest.digest(read));
        TorchsharpFile.save_torchsharp(read, At("again.dat"));
        Assert.Equal(File.ReadAllBytes(At("own.dat")), File.ReadAllBytes(At("again.dat")));

        using var other = new LeNet();
        Assert.NotEqual(Digest.digest(model.state_dict()), Digest.digest(other.state_dict()));
        _ = other.load(At("again.dat"));
        Assert.Equal(Digest.digest(model.state_dict()), Digest.digest(other.state_dict()));
    }

    /// <summary>No part of a file is taken for a whole one, no size believed. Spec: R29.2.</summary>
    [Fact]
    public void Damaged_torchsharp_files_are_refused()
    {
        for (var end = 0; end < Torchsharp.Length; end++)
        {
            Damaged(Torchsharp[..end], "got");
        }

        Damaged([.. Torchsharp, 0], "an end after the last tensor in m.dat, got 1 more bytes");
        Damaged([2, .. Torchsharp[1..], .. Torchsharp[1..]], "every name once in m.dat, got 'w' twice");
        Damaged([.. Torchsharp[..3], 8, .. Torchsharp[4..]], "a dtype of 'w' in m.dat, got number 8");
        Damaged([1, 1, 0xFF], "a name in UTF-8 in m.dat, got other bytes");
        Damaged([1, 1, 0x0A], "a name in m.dat, got one with control characters");
        Damaged([.. Enumerable.Repeat((byte)0xFF, 9), 1], "a number of tensors in m.dat, got a number beyond 63 bits");
        Damaged([1, 1, (byte)'w', 6, 2, 0, .. Enumerable.Repeat((byte)0xFF, 8), 0x7F], "bytes at most for 'w' in m.dat, got shape");
        Damaged([1, 1, (byte)'w', 11, 1, 1, 2], "bytes 0 and 1 as booleans of 'w' in m.dat, got others");
    }

    /// <summary>A prefix goes, the first pattern that fits maps, a prefix comes. Spec: R29.3.</summary>
    [Fact]
    public void Names_change()
    {
        string[] names = ["m.layers.0.weight", "m.layers.1.weight", "m.head", "other"];
        var renamed = Names.rename(names, [new("layers.0.*", "first.*"), new("layers.*.*", "blocks.*.w.*"), new("head", "top")], "m.", "net.");
        Assert.Equal(["net.first.weight", "net.blocks.1.w.weight", "net.top", "net.other"], renamed.Values);
        Assert.Equal(["c\\1"], Names.rename(["a+b"], [new("a+b", "c\\1")]).Values);
    }

    /// <summary>Two of one name, and what fits nothing, are errors. Spec: R29.3.</summary>
    [Fact]
    public void Names_that_do_not_fit_are_refused()
    {
        string[] names = ["a", "b"];
        Refused("expected every new name once, got 'b' for 'a' and 'b'", () => Names.rename(names, [new("a", "b")]));
        Refused("expected a name for every pattern, got none for 'x*'", () => Names.rename(names, [new("x*", "y*"), new("a", "c")]));
        Refused("expected as many * in 'c' as in '*', got 0", () => Names.rename(names, [new("*", "c")]));
        Refused("expected names that start with 'm.', got none", () => Names.rename(names, null, "m."));
    }

    /// <summary>A name comes before a shape, and the order of the target is kept. Spec: R29.4.</summary>
    [Fact]
    public void Likeness_by_name_then_shape_and_order()
    {
        TorchFile.save(Two(), At("in.pt"));
        Safetensors.save_file(new OrderedDictionary<string, Tensor> { ["bias"] = empty(3), ["y"] = empty(3, 2), ["z"] = empty(3, 2, float64) }, At("like.safetensors"));
        var plan = Converter.convert(At("in.pt"), At("out.dat"), like: At("like.safetensors"));
        Assert.Equal(
            [("bias", "bias", ""), ("a.weight", "y", "by shape and order, first of 2"), ("b.weight", "z", "by shape, there float64")],
            plan.rows.Select(row => (row.source, row.target, row.note)));
        Assert.Equal(6, TorchsharpFile.load_torchsharp(At("out.dat"))["z"].sum().item<float>());
    }

    /// <summary>Each tensor and each place without the other is named, and nothing is written. Spec: R29.4.</summary>
    [Fact]
    public void What_does_not_match_is_listed()
    {
        TorchFile.save(Two(), At("in.pt"));
        TorchFile.save(new OrderedDictionary<string, Tensor> { ["bias"] = empty(4), ["y"] = empty(3, 2), ["w"] = empty(9) }, At("like.pt"));
        var plan = Converter.convert(At("in.pt"), At("out.pt"), like: At("like.pt"));
        Assert.Equal(
            [
                "shape differs: bias is (3,), expected (4,)",
                "missing: w (9,), no tensor of its name or shape left",
                "unexpected: b.weight (3, 2), no place of its name or shape left",
            ],
            plan.faults);
        Assert.False(plan.written || File.Exists(At("out.pt")));
    }

    /// <summary>Integers stay; what becomes infinite is counted. Spec: R29.5.</summary>
    [Fact]
    public void Dtypes()
    {
        TorchFile.save(new OrderedDictionary<string, Tensor> { ["i"] = ones(1, int64), ["f"] = tensor(new[] { 1e6f, 1f, float.PositiveInfinity }) }, At("a.pt"));
        var plan = Converter.convert(At("a.pt"), At("b.safetensors"), dtype: "float16");
        Assert.Equal(["", "from float32, 1 became infinite"], plan.rows.Select(row => row.note));
        Assert.Equal([int64, float16], Safetensors.load_file(At("b.safetensors")).Values.Select(own => own.dtype));
        Refused("got 'int8'", () => Converter.convert(At("a.pt"), At("c.pt"), dtype: "int8"));
    }

    /// <summary>Targets are kept unless forced, and a dry run writes nothing. Spec: R29.6.</summary>
    [Fact]
    public void Targets_are_kept()
    {
        TorchFile.save(Two(), At("in.pt"));
        Assert.Equal(3, Converter.convert(At("in.pt"), At("out.dat"), dry_run: true).rows.Count);
        Assert.False(File.Exists(At("out.dat")));
        _ = Converter.convert(At("in.pt"), At("out.dat"));
        var before = File.ReadAllBytes(At("out.dat"));
        Refused("or --force to replace it, got one", () => Converter.convert(At("in.pt"), At("out.dat"), prefix: "n."));
        Assert.Equal(before, File.ReadAllBytes(At("out.dat")));
        Assert.True(Converter.convert(At("in.pt"), At("out.dat"), prefix: "n.", force: true).written);
        Assert.NotEqual(before, File.ReadAllBytes(At("out.dat")));
        Refused("expected a folder for", () => Converter.convert(At("in.pt"), Path.Combine(At("none"), "out.dat")));
    }

    private static OrderedDictionary<string, Tensor> Two()
        => new() { ["a.weight"] = zeros(3, 2), ["b.weight"] = ones(3, 2), ["bias"] = ones(3) };

    private static void Refused(string expected, Func<object> action)
        => Assert.Contains(expected, Assert.ThrowsAny<ArgumentException>(action).Message, StringComparison.Ordinal);

    private OrderedDictionary<string, Tensor> Load(string name) => AsStateDict.as_state_dict(TorchFile.load(At(name)));

    private string At(string name) => Path.Combine(folder.Name, name);

    private void Damaged(byte[] content, string expected)
    {
        File.WriteAllBytes(At("m.dat"), content);
        var error = Assert.Throws<CheckpointException>(() => TorchsharpFile.load_torchsharp(At("m.dat")));
        Assert.Contains(expected, error.Message, StringComparison.Ordinal);
    }
}
