using System.IO.Compression;
using System.Text.Json;
using System.Text.Json.Nodes;
using BridgeSharp.Checkpoint;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Files of <c>torch.save</c>, without running what is in them.</summary>
[Collection(nameof(Serial))]
public sealed class TorchFileTests : IDisposable
{
    private static readonly JsonSerializerOptions Indented = new() { WriteIndented = true };
    private readonly CheckpointFolder folder = new();
    private readonly DisposeScope scope = NewDisposeScope();

    public static TheoryData<string> Old => Vectors.Names("torch_file-1.13");

    public static TheoryData<string> Current => Vectors.Names("torch_file-2.10");

    public static TheoryData<string> Own => Vectors.Names("torch_file-csharp");

    public static TheoryData<string> Hostile => Vectors.Names("torch_file");

    public static TheoryData<string> Refused => [.. Values().Keys];

    /// <summary>Remove the files.</summary>
    public void Dispose()
    {
        scope.Dispose();
        folder.Dispose();
    }

    /// <summary>What torch.save of 1.13 wrote is read. Spec: R26.9, R26.11.</summary>
    [Theory]
    [MemberData(nameof(Old))]
    public void Files_of_pytorch_1_13(string name) => CheckWritten(Vectors.Find("torch_file-1.13", name));

    /// <summary>What torch.save of 2.10 wrote is read. Spec: R26.9, R26.11.</summary>
    [Theory]
    [MemberData(nameof(Current))]
    public void Files_of_pytorch_2_10(string name) => CheckWritten(Vectors.Find("torch_file-2.10", name));

    /// <summary>What Python's suite reads with torch.load is what <c>save</c> writes. Spec: R26.9, R26.11.</summary>
    [Theory]
    [MemberData(nameof(Own))]
    public void Files_of_csharp(string name)
    {
        var entry = Vectors.Find("torch_file-csharp", name);
        CheckWritten(entry);
        var expected = Records(folder.Path);
        TorchFile.save(Trees()[name], folder.Path);
        Assert.Equal(expected, Records(folder.Path));
    }

    /// <summary>Write those files anew, where <c>save</c> is to write others from now on.</summary>
    [Fact(Explicit = true)]
    public void Write_files_of_csharp()
    {
        var path = Path.Combine(Vectors.Folder, "torch_file-csharp.json");
        var document = JsonNode.Parse(File.ReadAllText(path))!;
        foreach (var entry in document["cases"]!.AsArray())
        {
            TorchFile.save(Trees()[entry!["name"]!.GetValue<string>()], folder.Path);
            entry["file"] = Convert.ToHexStringLower(File.ReadAllBytes(folder.Path));
        }

        File.WriteAllText(path, document.ToJsonString(Indented) + "\n");
    }

    /// <summary>A file that could do harm is refused as the vectors have it. Spec: R26.10.</summary>
    [Theory]
    [MemberData(nameof(Hostile))]
    public void Hostile_files_are_refused(string name)
    {
        var entry = Vectors.Find("torch_file", name);
        folder.Write(entry);
        var before = Same.Live();
        Vectors.Check(entry, () => TorchFile.load(folder.Path));
        Assert.Equal(before, Same.Live());
    }

    /// <summary>What is saved comes back: OrderedDicts with their metadata, dtypes, parameters, strides, shared storage. Spec: R26.9, R26.11.</summary>
    [Fact]
    public void States_come_back()
    {
        var shared = arange(6, dtype: float32);
        var state = new OrderedDict { ["a"] = shared, ["b"] = shared[TensorIndex.Slice(2, 6)].view(2, 2).t(), ["c"] = shared };
        state.metadata = new OrderedDict { [""] = new Dictionary<string, int> { ["version"] = 1 } };
        TorchFile.save(new List<object> { state, bfloat16, new Parameter(ones(2), requires_grad: false) }, folder.Path);

        var read = Assert.IsType<List<object?>>(TorchFile.load(folder.Path));

        var dict = Assert.IsType<OrderedDict>(read[0]);
        CheckpointFolder.Exact(state, dict);
        CheckpointFolder.Exact(new Dictionary<object, object> { [""] = new Dictionary<object, object> { ["version"] = 1L } }, dict.metadata);
        Assert.Equal([1, 2], ((Tensor)dict["b"]!).stride());
        ((Tensor)dict["a"]!)[3] = 7;
        Assert.Equal(7, ((Tensor)dict["b"]!)[1, 0].item<float>());
        Assert.Equal(bfloat16, read[1]);
        Assert.False(Assert.IsType<Parameter>(read[2]).requires_grad);
    }

    /// <summary>A tensor that a file names twice belongs to the dispose scope around the call. Spec: R26.9.</summary>
    [Fact]
    public void Tensors_belong_to_the_scope_of_the_caller()
    {
        folder.Write(Vectors.Find("torch_file-2.10", "views"));
        var before = Same.Live();
        using (NewDisposeScope())
        {
            Assert.Equal(4, Assert.IsAssignableFrom<OrderedDictionary<object, object?>>(TorchFile.load(folder.Path)).Count);
            Assert.Equal(before + 4, Same.Live());
        }

        Assert.Equal(before, Same.Live());
    }

    /// <summary>A value that load would refuse is refused by save, by its place. Spec: R26.3, R26.9.</summary>
    [Theory]
    [MemberData(nameof(Refused))]
    public void What_nobody_could_read_is_not_written(string text)
    {
        var error = Assert.Throws<ArgumentException>(() => TorchFile.save(Values()[text], folder.Path));
        Assert.Equal($"save: expected {text}", error.Message);
        Assert.Empty(folder.Entries);
    }

    /// <summary>A file that is refused leaves the model as it was. Spec: R26.12.</summary>
    [Fact]
    public void Refusal_changes_no_model()
    {
        using var model = new Models.LeNet();
        var before = StateDict.Of(model).ToDictionary(pair => pair.Key, pair => pair.Value.clone());
        TorchFile.save(StateDict.Of(model), folder.Path);
        var content = File.ReadAllBytes(folder.Path);
        content[content.Length / 2] ^= 1;
        File.WriteAllBytes(folder.Path, content);

        Assert.Throws<CheckpointException>(() => StateDict.Load(model, AsStateDict.as_state_dict(TorchFile.load(folder.Path))));

        Same.Trees(before, StateDict.Of(model));
    }

    private static Dictionary<string, object> Values()
    {
        var held = new List<object>();
        held.Add(held);
        return new()
        {
            ["what state dicts are made of at tree[\"a\"][0], got HashSet"] = new Dictionary<string, object> { ["a"] = new List<object> { new HashSet<int> { 1 } } },
            ["keys of type str or int at tree, got float"] = new Dictionary<double, int> { [1.5] = 1 },
            ["integers of 64 bits at tree[0], got 9223372036854775808"] = new List<ulong> { 1UL << 63 },
            ["text at tree[0], got half of a pair of surrogates"] = new List<string> { "\ud800" },
            ["at most 100 levels and 10000000 places, got more"] = held,
            ["a dense tensor with values at tree, got another"] = eye(2).to_sparse(),
            ["one of bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64 at tree[0], got complex64"]
                = new List<Tensor> { zeros(1, dtype: complex64) },
        };
    }

    /// <summary>The trees of the vectors that C# writes.</summary>
    private static Dictionary<string, object> Trees()
    {
        var shared = arange(6, dtype: float32);
        return new()
        {
            ["state dict"] = new OrderedDict
            {
                ["weight"] = tensor(new[] { 0.5f, -1.25f }).view(1, 2),
                ["bias"] = tensor(new[] { 2.0 }),
            },
            ["views"] = new Dictionary<string, Tensor>
            {
                ["whole"] = shared,
                ["part"] = shared[TensorIndex.Slice(2, 6)].view(2, 2).t(),
                ["one"] = tensor(7L),
                ["none"] = empty(0, 3),
            },
            ["dtypes"] = new ScalarType[] { @bool, uint8, int8, int16, int32, int64, float16, bfloat16, float64 }
                .Select(dtype => tensor(new[] { 1L, 0L }).to(dtype)).ToList(),
            ["values"] = CheckpointFolder.Dict(
            [
                new("n", null), new("i", 1L << 40), new("j", -1), new("f", -0.0), new("s", "ä"),
                new("l", new List<object> { 1, (2.5, true) }), new(3, new Dictionary<string, int>()),
            ]),
        };
    }

    private static List<(string Name, string Content)> Records(string path)
    {
        using var zip = ZipFile.OpenRead(path);
        return [.. zip.Entries.Select(entry =>
        {
            using var stream = entry.Open();
            using var content = new MemoryStream();
            stream.CopyTo(content);
            return (entry.FullName, Convert.ToHexStringLower(content.ToArray()));
        })];
    }

    /// <summary>Compare a file with its tree: values, shared storage and strides.</summary>
    private void CheckWritten(JsonElement entry)
    {
        folder.Write(entry);
        var tree = TorchFile.load(folder.Path);
        CheckpointFolder.Exact(CheckpointFolder.Values(entry.GetProperty("tree")), tree);
        if (entry.Optional("strides") is { } strides)
        {
            var tensors = Assert.IsAssignableFrom<OrderedDictionary<object, object?>>(tree);
            foreach (var member in strides.EnumerateObject())
            {
                Assert.Equal(member.Value.EnumerateArray().Select(stride => stride.GetInt64()), ((Tensor)tensors[member.Name]!).stride());
            }

            var shared = entry.Items("shared").Select(name => (Tensor)tensors[name.GetString()!]!).ToList();
            shared[0].fill_(-1);
            Assert.All(shared, tensor => Assert.True((tensor == -1).all().item<bool>()));
        }
    }
}
