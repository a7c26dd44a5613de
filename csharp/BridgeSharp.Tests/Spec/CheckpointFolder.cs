using System.Collections;
using System.Text.Json;
using TorchSharp;
using Xunit;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>A folder for one test of checkpoint files.</summary>
internal sealed class CheckpointFolder : IDisposable
{
    /// <summary>The name that the vectors give a file.</summary>
    public const string File = "data.bin";

    /// <summary>The folder.</summary>
    public string Name { get; } = Directory.CreateTempSubdirectory("bridge-").FullName;

    /// <summary>The file in it.</summary>
    public string Path => System.IO.Path.Combine(Name, File);

    /// <summary>The names of all that is in it, in order.</summary>
    public IEnumerable<string> Entries => Directory.EnumerateFileSystemEntries(Name).Select(entry => System.IO.Path.GetFileName(entry)!).Order(StringComparer.Ordinal);

    /// <summary>Write the file of a case.</summary>
    public void Write(JsonElement entry) => System.IO.File.WriteAllBytes(Path, Convert.FromHexString(entry.GetProperty("file").GetString()!));

    /// <summary>Read a tree, in which numbers may be given by their bits.</summary>
    public static object? Values(JsonElement form) => form.ValueKind switch
    {
        JsonValueKind.Array => form.EnumerateArray().Select(Values).ToList(),
        JsonValueKind.Object when form.Optional("float") is { } bits
            => BitConverter.Int64BitsToDouble(long.Parse(bits.GetString()!, System.Globalization.NumberStyles.HexNumber, null)),
        JsonValueKind.Object when form.Optional("tuple") is { } parts => parts.EnumerateArray().Select(Values).ToArray(),
        JsonValueKind.Object when form.Optional("pairs") is { } pairs
            => Dict(pairs.EnumerateArray().Select(pair => KeyValuePair.Create(Vectors.Tree(pair[0])!, Values(pair[1])))),
        JsonValueKind.Object when form.Optional("dict") is { } members
            => Dict(members.EnumerateObject().Select(member => KeyValuePair.Create((object)member.Name, Values(member.Value)))),
        JsonValueKind.Number when form.GetRawText().AsSpan().IndexOfAny(".eE") >= 0 => form.GetDouble(),
        _ => Vectors.Tree(form),
    };

    /// <summary>Compare two trees, numbers by their bits, where a dictionary may be any.</summary>
    public static void Exact(object? expected, object? actual)
    {
        switch (expected)
        {
            case IDictionary dictionary:
                var same = Assert.IsAssignableFrom<IDictionary>(actual);
                Assert.Equal(dictionary.Keys.Cast<object>(), same.Keys.Cast<object>());
                Exact(dictionary.Values.Cast<object?>().ToList(), same.Values.Cast<object?>().ToList());
                break;
            case IList list:
                var other = Assert.IsAssignableFrom<IList>(actual);
                Assert.Equal((list is Array, list.Count), (other is Array, other.Count));
                list.Cast<object?>().Zip(other.Cast<object?>()).ToList().ForEach(pair => Exact(pair.First, pair.Second));
                break;
            case double number:
                Assert.Equal(BitConverter.DoubleToInt64Bits(number), BitConverter.DoubleToInt64Bits(Assert.IsType<double>(actual)));
                break;
            default:
                Same.Trees(expected, actual);
                break;
        }
    }

    /// <summary>Make a small checkpoint with all kinds of values.</summary>
    public static OrderedDictionary<object, object?> State(long seed = 0)
    {
        using var generator = new Generator((ulong)seed);
        var weight = randn([3, 2], generator: generator);
        return Dict(
        [
            new("model", Dict([new("weight", weight), new("flag", tensor(new[] { true })), new("none", empty(0, 2))])),
            new("optimizer", Dict([new("state", Dict([new(0L, Dict([new("exp_avg", weight * 2)]))])), new("groups", new List<object?> { new object?[] { 0.9, 0.999 } })])),
            new("step", seed),
            new("loss", double.PositiveInfinity),
        ]);
    }

    /// <summary>Make a dictionary.</summary>
    public static OrderedDictionary<object, object?> Dict(IEnumerable<KeyValuePair<object, object?>> pairs) => new(pairs);

    /// <inheritdoc/>
    public void Dispose() => Directory.Delete(Name, recursive: true);
}
