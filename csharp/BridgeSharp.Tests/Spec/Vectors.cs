using System.Collections.Concurrent;
using System.Text.Json;
using BridgeSharp.Parity;
using TorchSharp;
using Xunit;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Reads the vectors, whose form tests/spec/vectors/README.md describes.</summary>
internal static class Vectors
{
    private static readonly Dictionary<string, Type> Errors = new()
    {
        ["ValueError"] = typeof(ArgumentException),
        ["TypeError"] = typeof(ArgumentException),
        ["KeyError"] = typeof(KeyNotFoundException),
        ["RuntimeError"] = typeof(InvalidOperationException),
        ["FileNotFoundError"] = typeof(FileNotFoundException),
    };

    private static readonly ConcurrentDictionary<string, List<JsonElement>> Files = [];

    /// <summary>The folder of the vectors, above the test program.</summary>
    public static string Folder
    {
        get
        {
            var folder = new DirectoryInfo(AppContext.BaseDirectory);
            while (!Directory.Exists(Path.Combine(folder.FullName, "tests", "spec", "vectors")))
            {
                folder = folder.Parent ?? throw new DirectoryNotFoundException("vectors: expected tests/spec/vectors above the test program");
            }

            return Path.Combine(folder.FullName, "tests", "spec", "vectors");
        }
    }

    /// <summary>Dtypes by their names in both languages.</summary>
    public static readonly Dictionary<string, ScalarType> Dtypes = new ScalarType[]
    {
        uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, @bool,
    }.ToDictionary(Digest.dtype_name);

    /// <summary>List the names of a file's cases.</summary>
    public static TheoryData<string> Names(string file)
        => [.. Read(file).Select(entry => entry.GetProperty("name").GetString()!)];

    /// <summary>Find a case by its name, or skip it where this machine gives other bits.</summary>
    public static JsonElement Find(string file, string name)
    {
        var found = Read(file).Single(entry => entry.GetProperty("name").GetString() == name);
        Assert.SkipUnless(found.Optional("fused") is null || Fused(), "torch runs without fused multiply-add here, and gives other bits");
        return found;
    }

    /// <summary>Take a member that need not be there, or null.</summary>
    public static JsonElement? Optional(this JsonElement element, string name)
        => element.TryGetProperty(name, out var value) ? value : null;

    /// <summary>List the members of an object.</summary>
    public static IEnumerable<(string Name, JsonElement Value)> Members(this JsonElement element, string name)
        => element.GetProperty(name).EnumerateObject().Select(member => (member.Name, member.Value));

    /// <summary>List the items of an array.</summary>
    public static IReadOnlyList<JsonElement> Items(this JsonElement element, string name)
        => [.. element.GetProperty(name).EnumerateArray()];

    /// <summary>Read a number, which may be <c>"nan"</c> or <c>"inf"</c>.</summary>
    public static double Number(JsonElement value) => value.ValueKind != JsonValueKind.String
        ? value.GetDouble()
        : value.GetString() switch
        {
            "nan" => double.NaN,
            "inf" => double.PositiveInfinity,
            var other => throw new ArgumentException($"vectors: expected nan or inf, got {other}"),
        };

    /// <summary>Read tensors, tuples, dicts, records, lists and plain values.</summary>
    public static object? Tree(JsonElement value) => value.ValueKind switch
    {
        JsonValueKind.Array => value.EnumerateArray().Select(Tree).ToList(),
        JsonValueKind.Object when value.Optional("tensor") is { } values => Tensor(
            values, value.Optional("dtype")?.GetString() ?? "float64", value.Optional("shape")),
        JsonValueKind.Object when value.Optional("tuple") is { } parts => Tuple([.. parts.EnumerateArray().Select(Tree)]),
        JsonValueKind.Object when value.Optional("record") is { } parts => new Pair(Tree(parts[0]), Tree(parts[1])),
        JsonValueKind.Object when value.Optional("pairs") is { } pairs => pairs.EnumerateArray().ToDictionary(pair => Tree(pair[0])!, pair => Tree(pair[1])),
        JsonValueKind.Object => value.Members("dict").ToDictionary(part => part.Name, part => Tree(part.Value)),
        JsonValueKind.Number when value.TryGetInt64(out var whole) => whole,
        JsonValueKind.Number => value.GetDouble(),
        JsonValueKind.String => value.GetString(),
        JsonValueKind.Null => null,
        _ => value.GetBoolean(),
    };

    /// <summary>Read a dict of keyword arguments.</summary>
    public static Dictionary<string, object?> Kwargs(JsonElement entry)
        => entry.Members("kwargs").ToDictionary(part => part.Name, part => Tree(part.Value));

    /// <summary>Read a tensor.</summary>
    public static Tensor Tensor(JsonElement values, string dtype = "float64", JsonElement? shape = null)
    {
        List<JsonElement> flat = [];
        var sizes = Flatten(values, flat);
        var type = Dtypes[dtype];
        using var scope = NewDisposeScope();
        var result = type switch
        {
            ScalarType.Bool => tensor(flat.Select(item => item.GetBoolean()).ToArray()),
            ScalarType.Float16 or ScalarType.BFloat16 or ScalarType.Float32 or ScalarType.Float64 => tensor(flat.Select(Number).ToArray()).to(type),
            _ => tensor(flat.Select(item => item.GetInt64()).ToArray()).to(type),
        };
        var stated = shape?.EnumerateArray().Select(size => size.GetInt64()).ToArray();
        return result.reshape(stated ?? [.. sizes]).MoveToOuterDisposeScope();
    }

    /// <summary>Expect the error of a case, where it has one: its type and its whole text.</summary>
    public static void Check(JsonElement entry, Action run, string folder = "")
    {
        if ((entry.Optional("raises") ?? entry.Optional("fails")) is not { } raises)
        {
            run();
            return;
        }

        var (kind, text) = raises.EnumerateObject().Select(member => (member.Name, member.Value.GetString()!)).Single();
        var error = Assert.ThrowsAny<Exception>(run);
        Assert.IsType(Errors[kind], error, exactMatch: false);
        Assert.Equal(text.Replace("{folder}", folder, StringComparison.Ordinal), error.Message);
    }

    /// <summary>Tell whether torch multiplies and adds in one, without rounding in between.</summary>
    private static bool Fused()
    {
        using var scope = NewDisposeScope();
        var root = 1 + Math.Pow(2, -12);
        return full(16, -(1 + Math.Pow(2, -11))).add(full(16, root), alpha: root).all().item<bool>();
    }

    private static object Tuple(object?[] parts) => parts switch
    {
        [] => ValueTuple.Create(),
        [var one] => ValueTuple.Create(one),
        [var one, var two] => (one, two),
        [var one, var two, var three] => (one, two, three),
        [var one, var two, var three, var four] => (one, two, three, four),
        _ => throw new ArgumentException($"vectors: expected a tuple of 0 to 4 parts, got {parts.Length}"),
    };

    private static List<long> Flatten(JsonElement values, List<JsonElement> flat)
    {
        if (values.ValueKind != JsonValueKind.Array)
        {
            flat.Add(values);
            return [];
        }

        List<long> inner = [];
        foreach (var item in values.EnumerateArray())
        {
            inner = Flatten(item, flat);
        }

        return [values.GetArrayLength(), .. inner];
    }

    private static List<JsonElement> Read(string file) => Files.GetOrAdd(file, Parse);

    private static List<JsonElement> Parse(string file)
    {
        using var stream = File.OpenRead(Path.Combine(Folder, $"{file}.json"));
        using var document = JsonDocument.Parse(stream);
        return [.. document.RootElement.Clone().Items("cases")];
    }
}

/// <summary>A record of two parts.</summary>
internal sealed record Pair(object? x, object? y);
