using System.Text.Json;
using BridgeSharp.Checkpoint;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Files of named tensors in the safetensors format.</summary>
[Collection(nameof(Serial))]
public sealed class SafetensorsTests : IDisposable
{
    private readonly CheckpointFolder folder = new();
    private readonly DisposeScope scope = NewDisposeScope();

    public static TheoryData<string> Cases => Vectors.Names("safetensors");

    /// <summary>Remove the files.</summary>
    public void Dispose()
    {
        scope.Dispose();
        folder.Dispose();
    }

    /// <summary>Files are read, written and refused as the vectors have it. Spec: R26.1, R26.2.</summary>
    [Theory]
    [MemberData(nameof(Cases))]
    public void Vectors_hold(string name)
    {
        var entry = Vectors.Find("safetensors", name);
        folder.Write(entry);
        Vectors.Check(entry, () =>
        {
            var tensors = Safetensors.load_file(folder.Path);
            Same.Trees(entry.Members("tensors").ToDictionary(member => member.Name, member => Vectors.Tree(member.Value)), tensors);
            var metadata = Safetensors.load_metadata(folder.Path);
            Assert.Equal(entry.Members("metadata").Select(member => (member.Name, member.Value.GetString()!)), metadata.Select(pair => (pair.Key, pair.Value)));
            if (entry.GetProperty("written").GetBoolean())
            {
                var content = File.ReadAllBytes(folder.Path);
                Safetensors.save_file(tensors, folder.Path, metadata);
                Assert.Equal(content, File.ReadAllBytes(folder.Path));
            }
        });
    }

    /// <summary>A file that is refused leaves no tensor behind; a missing file is no CheckpointException. Spec: R26.2.</summary>
    [Fact]
    public void Refusal_leaves_no_tensor()
    {
        Safetensors.save_file(All(), folder.Path);
        var content = File.ReadAllBytes(folder.Path);
        var before = Same.Live();
        for (var length = 0; length < content.Length; length += 3)
        {
            File.WriteAllBytes(folder.Path, content[..length]);
            var error = Assert.Throws<CheckpointException>(() => Safetensors.load_file(folder.Path));
            Assert.Contains(CheckpointFolder.File, error.Message, StringComparison.Ordinal);
        }

        Assert.Equal(before, Same.Live());
        Assert.Throws<FileNotFoundException>(() => Safetensors.load_file(folder.Path + ".none"));
        Assert.Throws<FileNotFoundException>(() => Safetensors.load_metadata(folder.Path + ".none"));
    }

    /// <summary>Strides, offsets and gradients are left behind; the tensors are aligned and fresh. Spec: R26.1.</summary>
    [Fact]
    public void Layouts_come_back_as_values()
    {
        var expected = All();
        expected["tied"] = new Parameter(ones(2));
        expected["again"] = expected["tied"];
        Safetensors.save_file(expected, folder.Path);

        var tensors = Safetensors.load_file(folder.Path);

        Same.Trees(expected.ToDictionary(), tensors);
        tensors["tied"].zero_();
        Assert.Equal(2, tensors["again"].sum().item<float>());
        var content = File.ReadAllBytes(folder.Path);
        var length = (int)BitConverter.ToInt64(content);
        Assert.Equal(0, length % 8);
        using var header = JsonDocument.Parse(content.AsMemory(8, length));
        foreach (var member in header.RootElement.EnumerateObject())
        {
            Assert.Equal(0, member.Value.GetProperty("data_offsets")[0].GetInt64() % tensors[member.Name].ElementSize);
        }
    }

    /// <summary>A dtype or name that the format does not have leaves the old file alone. Spec: R26.3.</summary>
    [Theory]
    [InlineData("complex", "safetensors: expected one of bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64 for 'complex', got complex64")]
    [InlineData("sparse", "safetensors: expected a dense tensor with values as 'sparse', got another")]
    [InlineData("__metadata__", "safetensors: expected another name than '__metadata__', got it for a tensor")]
    [InlineData("half", "safetensors: expected text as name, got half of a pair of surrogates")]
    [InlineData("text", "safetensors: expected text as metadata, got half of a pair of surrogates")]
    public void What_cannot_be_written_is_refused(string name, string text)
    {
        File.WriteAllText(folder.Path, "old");
        var tensor = name switch
        {
            "complex" => zeros(1, dtype: complex64),
            "sparse" => eye(2).to_sparse(),
            _ => zeros(1),
        };
        var metadata = new Dictionary<string, string> { ["a"] = name == "text" ? "\udc00" : "" };

        var error = Assert.Throws<ArgumentException>(
            () => Safetensors.save_file(new Dictionary<string, Tensor> { [name == "half" ? "\ud800" : name] = tensor }, folder.Path, metadata));

        Assert.Equal(text, error.Message);
        Assert.Equal("old", File.ReadAllText(folder.Path));
    }

    /// <summary>Tensors of more than one part are written and read whole. Spec: R26.1.</summary>
    [Fact]
    public void Large_tensors_come_back()
    {
        var large = arange((1L << 24) + 5, dtype: int16);
        Safetensors.save_file(new Dictionary<string, Tensor> { ["a"] = large }, folder.Path);
        Assert.True(Safetensors.load_file(folder.Path)["a"].Equals(large));
    }

    private static OrderedDictionary<string, Tensor> All() => new()
    {
        ["flag"] = tensor(new[] { true, false, true }),
        ["half"] = tensor(new[] { 1.5 }).half(),
        ["bf16"] = tensor(-0.25).bfloat16(),
        ["turned"] = arange(6.0).reshape(2, 3).t(),
        ["part"] = arange(10)[TensorIndex.Slice(2, 9, 3)],
        ["none"] = empty([0, 3], dtype: float64),
        ["small"] = tensor(new sbyte[] { -1 }),
    };
}
