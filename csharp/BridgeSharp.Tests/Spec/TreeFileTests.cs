using BridgeSharp.Checkpoint;
using TorchSharp;
using Xunit;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Trees in safetensors files, with a digest.</summary>
[Collection(nameof(Serial))]
public sealed class TreeFileTests : IDisposable
{
    private readonly CheckpointFolder folder = new();
    private readonly DisposeScope scope = NewDisposeScope();

    public static TheoryData<string> Cases => Vectors.Names("tree_file");

    public static TheoryData<string> Refused => [.. Values().Keys];

    /// <summary>Remove the files.</summary>
    public void Dispose()
    {
        scope.Dispose();
        folder.Dispose();
    }

    /// <summary>Trees become the bytes of the vectors and come back, or are refused. Spec: R26.4, R26.5.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        var entry = Vectors.Find("tree_file", name);
        folder.Write(entry);
        Vectors.Check(entry, () =>
        {
            var actual = TreeFile.read(folder.Path);
            var tree = CheckpointFolder.Values(entry.GetProperty("tree"));
            CheckpointFolder.Exact(tree, actual);
            TreeFile.write(tree, folder.Path);
            Assert.Equal(entry.GetProperty("file").GetString(), Convert.ToHexStringLower(File.ReadAllBytes(folder.Path)));
        });
    }

    /// <summary>One bit that changes, anywhere in the file, is refused, and no tensor is left behind. Spec: R26.5.</summary>
    [Fact]
    public void Every_flipped_bit_is_found()
    {
        TreeFile.write(CheckpointFolder.Dict([new("model", new Dictionary<string, Tensor> { ["weight"] = ones(2) }), new("step", 1)]), folder.Path);
        var content = File.ReadAllBytes(folder.Path);
        var before = Same.Live();
        for (var place = 0; place < content.Length; place++)
        {
            var changed = content.ToArray();
            changed[place] ^= (byte)(1 << (place * 5 % 8));
            File.WriteAllBytes(folder.Path, changed);
            Assert.Throws<CheckpointException>(() => TreeFile.read(folder.Path));
        }

        Assert.Equal(before, Same.Live());
    }

    /// <summary>The model's tensors have their own names, all others a prefix. Spec: R26.6.</summary>
    [Fact]
    public void Plain_tools_find_the_model()
    {
        var tree = CheckpointFolder.State();
        var model = (OrderedDictionary<object, object?>)tree["model"]!;
        (model["__bridge__[0]"], model["__metadata__"]) = (ones(1), ones(2));
        TreeFile.write(tree, folder.Path);

        var names = Safetensors.load_file(folder.Path).Keys.ToList();

        Assert.Equal(["weight", "flag", "none"], names.Where(name => !name.StartsWith("__bridge__", StringComparison.Ordinal)));
        Assert.Equal(6, names.Count);
        Assert.Equal("pt", Safetensors.load_metadata(folder.Path)["format"]);
        CheckpointFolder.Exact(tree, TreeFile.read(folder.Path));
    }

    /// <summary>Tuples, arrays, lists and numbers of any type come back as those of one type. Spec: R26.4.</summary>
    [Fact]
    public void Types_come_back_plain()
    {
        TreeFile.write(new List<object> { (1, 0.5f), new long[] { 2 }, new List<byte> { 3 }, new Dictionary<int, short> { [4] = 5 } }, folder.Path);
        CheckpointFolder.Exact(
            new List<object?> { new object?[] { 1L, 0.5 }, new object?[] { 2L }, new List<object?> { 3L }, CheckpointFolder.Dict([new(4L, 5L)]) },
            TreeFile.read(folder.Path));
    }

    /// <summary>A value that is none of a tree is named by its place; nothing is written. Spec: R26.3.</summary>
    [Theory]
    [MemberData(nameof(Refused))]
    public void What_cannot_be_written_is_refused(string text)
    {
        var error = Assert.Throws<ArgumentException>(() => TreeFile.write(Values()[text], folder.Path));
        Assert.Equal($"write: expected {text}", error.Message);
        Assert.Empty(folder.Entries);
    }

    /// <summary>A state of another model, and what is no state, leave the model as it was. Spec: R26.12.</summary>
    [Fact]
    public void Loading_into_a_model_is_all_or_nothing()
    {
        using var model = new Models.LeNet();
        using var other = new Models.LeNet();
        var before = StateDict.Of(model).ToDictionary(pair => pair.Key, pair => pair.Value.clone());
        var bad = StateDict.Of(other);
        bad.SetAt(bad.Count - 1, zeros(3));
        TreeFile.write(CheckpointFolder.Dict([new("model", bad), new("step", 1), new("list", new List<Tensor> { ones(1) })]), folder.Path);
        var tree = (OrderedDictionary<object, object?>)TreeFile.read(folder.Path)!;

        var error = Assert.Throws<InvalidOperationException>(() => StateDict.Load(model, AsStateDict.as_state_dict(tree["model"])));
        Assert.Contains("size mismatch", error.Message, StringComparison.Ordinal);
        Assert.Equal("as_state_dict: expected names and tensors, got list", Refusal(tree["list"]));
        Assert.Equal("as_state_dict: expected a name and a tensor, got step: int", Refusal(CheckpointFolder.Dict([new("a", ones(1)), new("step", 1)])));
        Same.Trees(before, StateDict.Of(model));

        TreeFile.write(CheckpointFolder.Dict([new("model", StateDict.Of(other))]), folder.Path);
        StateDict.Load(model, AsStateDict.as_state_dict(((OrderedDictionary<object, object?>)TreeFile.read(folder.Path)!)["model"]));
        Same.Trees(StateDict.Of(other), StateDict.Of(model));
    }

    private static string Refusal(object? value) => Assert.Throws<ArgumentException>(() => AsStateDict.as_state_dict(value)).Message;

    private static Dictionary<string, object> Values()
    {
        var nested = new List<object>();
        for (var level = 0; level < 101; level++)
        {
            nested = [nested];
        }

        return new()
        {
            ["a dict, list, tuple, tensor, number, text, boolean or None at tree[\"a\"][0], got HashSet"]
                = new Dictionary<string, object> { ["a"] = new List<object> { new HashSet<int> { 1 } } },
            ["keys of type str or int at tree[\"a\"], got float"] = new Dictionary<string, object> { ["a"] = new Dictionary<double, int> { [1.5] = 0 } },
            ["keys of type str or int at tree, got bool"] = new Dictionary<bool, int> { [true] = 0 },
            ["every key once at tree, got 1 twice"] = CheckpointFolder.Dict([new(1, 0), new(1L, 0)]),
            ["an integer of 64 bits at tree[0], got 9223372036854775808"] = new List<ulong> { 1UL << 63 },
            ["text at tree[0], got half of a pair of surrogates"] = new List<string> { "\ud800" },
            ["at most 100 levels, got more"] = nested,
        };
    }
}
