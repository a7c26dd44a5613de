using System.Numerics;
using BridgeSharp.Parallel;
using BridgeSharp.Parity;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Checkpoint;

/// <summary>A name that a pickle gave.</summary>
internal sealed record Global(string Name);

/// <summary>The memory of one or several tensors, as a tensor of one dimension.</summary>
internal sealed record Storage(string Record, string Kind, Tensor Values);

/// <summary>The storages of an archive, each read once, when a tensor first names it.</summary>
/// <remarks>Spec: R26.11.</remarks>
internal sealed class Storages(Archive archive)
{
    private readonly Dictionary<string, Storage> known = [];

    /// <summary>Find the storage of <c>("storage", type, key, location, elements)</c>.</summary>
    public Storage Find(object? reference)
    {
        if (reference is not object?[] parts
            || parts is not ["storage", Global { Name: var kind }, string key, _, long count]
            || !Rebuild.Kinds.ContainsKey(kind))
        {
            throw new InvalidDataException();
        }

        var record = $"data/{key}";
        if (!known.TryGetValue(record, out var storage))
        {
            known[record] = storage = Read(record, kind, count);
        }

        if (storage.Kind != kind || storage.Values.numel() != count)
        {
            archive.Refuse($"one type and size of {record}", "two");
        }

        return storage;
    }

    /// <summary>Read a storage whose record has its size.</summary>
    private Storage Read(string record, string kind, long count)
    {
        var dtype = Rebuild.Kinds[kind];
        var (size, stated) = (archive.Size(record), (Int128)count * Entry.ItemSize(dtype));
        if (size != stated)
        {
            archive.Refuse($"{stated} bytes of {record}", $"{size}");
        }

        var values = empty(count, dtype);
        archive.ReadInto(record, values);
        if (!TensorBytes.Sound(values))
        {
            archive.Refuse($"bytes 0 and 1 as booleans of {record}", "others");
        }

        return new Storage(record, kind, values);
    }
}

/// <summary>The values that a pickle of state dicts makes from names and arguments.</summary>
internal static class Rebuild
{
    /// <summary>The storages of PyTorch, and their dtypes.</summary>
    public static readonly Dictionary<string, ScalarType> Kinds = new()
    {
        ["torch.BoolStorage"] = @bool,
        ["torch.ByteStorage"] = uint8,
        ["torch.CharStorage"] = int8,
        ["torch.ShortStorage"] = int16,
        ["torch.IntStorage"] = int32,
        ["torch.LongStorage"] = int64,
        ["torch.HalfStorage"] = float16,
        ["torch.BFloat16Storage"] = bfloat16,
        ["torch.FloatStorage"] = float32,
        ["torch.DoubleStorage"] = float64,
    };

    /// <summary>The dtypes by the names that pickles give them.</summary>
    public static readonly Dictionary<string, ScalarType> Dtypes = Entry.Dtypes.Values.ToDictionary(dtype => $"torch.{Digest.dtype_name(dtype)}");

    /// <summary>What a file may name, besides dtypes; none of it is looked up.</summary>
    public static readonly HashSet<string> Globals =
    [
        "collections.OrderedDict",
        "collections.Counter",
        "torch.Size",
        "torch._utils._rebuild_parameter",
        "torch._utils._rebuild_tensor_v2",
        .. Kinds.Keys,
    ];

    /// <summary>Make a value; what does not fit is an InvalidDataException.</summary>
    /// <remarks>Spec: R26.10. Source: torch/_utils.py</remarks>
    /// <param name="pair">The name, and its arguments.</param>
    /// <param name="archive">Refuses tensors that do not fit.</param>
    public static object Make(object?[] pair, Archive archive)
        => ((pair[0] as Global)?.Name, pair[1] as object?[]) switch
        {
            ("collections.OrderedDict", []) => new OrderedDict(),
            ("torch._utils._rebuild_tensor_v2", [Storage storage, long offset, object?[] size, object?[] stride, bool grad, OrderedDict { Count: 0 }])
                => MakeTensor(storage, offset, Whole(size), Whole(stride), grad, archive),
            ("torch._utils._rebuild_parameter", [Tensor data and not Parameter, bool grad, OrderedDict { Count: 0 }])
                => MakeParameter(data, grad, archive),
            ("collections.Counter", [OrderedDictionary<object, object?> counts and not OrderedDict]) => counts,
            ("torch.Size", [object?[] size]) => Whole(size).Select(item => (object?)item).ToArray(),
            _ => throw new InvalidDataException(),
        };

    /// <summary>Make a tensor inside of its storage.</summary>
    private static Tensor MakeTensor(Storage storage, long offset, long[] size, long[] stride, bool grad, Archive archive)
    {
        if (size.Length != stride.Length || offset < 0)
        {
            throw new InvalidDataException();
        }

        var values = storage.Values;
        BigInteger reach = offset, bytes = values.ElementSize;
        foreach (var (count, step) in size.Zip(stride))
        {
            reach += (BigInteger)(count - 1) * step;

            // Sizes of 0 count as 1, so that no product of some of them overflows.
            bytes *= Math.Max(count, 1);
            if (bytes > long.MaxValue)
            {
                break;
            }
        }

        var fits = size.Contains(0) ? offset <= values.numel() : reach < values.numel();
        if (!fits || bytes > long.MaxValue)
        {
            archive.Refuse(
                $"a tensor inside of the {values.numel()} elements of {storage.Record}",
                $"offset {offset}, shape {Text.Shape(size)}, strides {Text.Shape(stride)}");
        }

        using var view = values.as_strided(size, stride, offset);
        CheckFlag(values, grad, archive);
        return empty(0, values.dtype).set_(view).requires_grad_(grad);
    }

    /// <summary>Make a parameter.</summary>
    private static Parameter MakeParameter(Tensor data, bool grad, Archive archive)
    {
        CheckFlag(data, grad, archive);
        return new Parameter(data.detach(), grad);
    }

    /// <summary>Refuse a flag that only floating point can have.</summary>
    private static void CheckFlag(Tensor tensor, bool grad, Archive archive)
    {
        if (grad && !tensor.is_floating_point())
        {
            archive.Refuse("gradients of floating point", Digest.dtype_name(tensor.dtype));
        }
    }

    /// <summary>Read a tuple of whole numbers from 0.</summary>
    private static long[] Whole(object?[] values)
        => [.. values.Select(value => value is long number and >= 0 ? number : throw new InvalidDataException())];
}
