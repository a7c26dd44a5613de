using System.Globalization;
using System.IO.Compression;
using BridgeSharp.Parallel;
using BridgeSharp.Parity;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Checkpoint;

/// <summary>Writes the pickle and the storages of a file of <c>torch.save</c>.</summary>
/// <remarks>Spec: R26.9, R26.11. Source: torch/serialization.py</remarks>
internal sealed class Pickler(Stream pickle) : PickleWriter(pickle)
{
    private const byte Protocol = 2;
    private static readonly Dictionary<ScalarType, string> Kinds = Rebuild.Kinds.ToDictionary(pair => pair.Value, pair => pair.Key);
    private readonly Dictionary<(nint Address, ScalarType Dtype), int> keys = [];
    private readonly List<Tensor> storages = [];

    /// <summary>Write a file of <c>torch.save</c>.</summary>
    public static void Write(object? value, Stream file)
    {
        using var scope = NewDisposeScope();
        using var mode = no_grad();
        using var pickle = new MemoryStream();
        var pickler = new Pickler(pickle);
        pickler.Put([0x80, Protocol]);
        pickler.Value(value);
        pickler.Code('.');
        using var zip = new ZipArchive(file, ZipArchiveMode.Create, leaveOpen: true);
        Record(zip, "data.pkl", pickle.ToArray());
        Record(zip, "byteorder", "little"u8);
        for (var i = 0; i < pickler.storages.Count; i++)
        {
            using var stream = Entry(zip, string.Create(CultureInfo.InvariantCulture, $"data/{i}"));
            TensorBytes.Write(pickler.storages[i], stream);
        }

        Record(zip, "version", "3\n"u8);
    }

    private static Stream Entry(ZipArchive zip, string record)
    {
        var entry = zip.CreateEntry($"archive/{record}", CompressionLevel.NoCompression);

        // The same value gives the same bytes, whenever.
        entry.LastWriteTime = new DateTimeOffset(1980, 1, 1, 0, 0, 0, TimeSpan.Zero);
        return entry.Open();
    }

    private static void Record(ZipArchive zip, string record, ReadOnlySpan<byte> content)
    {
        using var stream = Entry(zip, record);
        stream.Write(content);
    }

    private void Value(object? value)
    {
        switch (value)
        {
            case null: Code('N'); break;
            case bool flag: Put([flag ? (byte)0x88 : (byte)0x89]); break;
            case string text: Text(text); break;
            case float or double: Float(Convert.ToDouble(value, CultureInfo.InvariantCulture)); break;
            case ScalarType dtype: Named($"torch.{Digest.dtype_name(dtype)}"); break;
            case Parameter parameter: Parameter(parameter); break;
            case Tensor tensor: Tensor(tensor, tensor.requires_grad); break;
            case IConvertible: Int(Convert.ToInt64(value, CultureInfo.InvariantCulture)); break;
            default: Parts(value, Container.Of(value)!); break;
        }
    }

    private void Parts(object value, Container container)
    {
        var parts = container.Parts(value, "");
        if (container.IsDictionary)
        {
            Dict(value as OrderedDict, parts);
            return;
        }

        var isList = container.IsList && value is not Array;
        Code(isList ? ']' : '(');
        Code(isList ? '(' : null);
        foreach (var part in parts)
        {
            Value(part.Value);
        }

        Code(isList ? 'e' : 't');
    }

    private void Dict(OrderedDict? ordered, IEnumerable<Part> parts)
    {
        if (ordered is null)
        {
            Code('}');
        }
        else
        {
            Called("collections.OrderedDict");
        }

        Code('(');
        foreach (var part in parts)
        {
            Value(part.Key);
            Value(part.Value);
        }

        Code('u');
        if (ordered?.metadata is { } metadata)
        {
            Value(new Dictionary<string, object> { ["_metadata"] = metadata });
            Code('b');
        }
    }

    private void Parameter(Parameter parameter)
    {
        Named("torch._utils._rebuild_parameter");
        Code('(');
        Tensor(parameter, requiresGrad: false);
        Value(parameter.requires_grad);
        Called("collections.OrderedDict");
        Code('t');
        Code('R');
    }

    private void Tensor(Tensor tensor, bool requiresGrad)
    {
        Named("torch._utils._rebuild_tensor_v2");
        Code('(');
        Storage(tensor.detach());
        Value(tensor.storage_offset());
        Value(tensor.shape);
        Value(tensor.stride());
        Value(requiresGrad);
        Called("collections.OrderedDict");
        Code('t');
        Code('R');
    }

    /// <summary>Refer to the storage of a tensor, which goes to a record of its own, once.</summary>
    private void Storage(Tensor tensor)
    {
        var address = NativeModule.Call<nint>("THSStorage_data_ptr", tensor.Handle);
        var count = (long)NativeModule.Call<ulong>("THSStorage_nbytes", tensor.Handle) / tensor.ElementSize;
        var key = storages.Count;
        if (address == 0 || keys.TryAdd((address, tensor.dtype), key))
        {
            storages.Add(tensor.as_strided([count], [1]));
        }
        else
        {
            key = keys[(address, tensor.dtype)];
        }

        Code('(');
        Text("storage");
        Named(Kinds[tensor.dtype]);
        Text(string.Create(CultureInfo.InvariantCulture, $"{key}"));
        Text("cpu");
        Int(count);
        Code('t');
        Code('Q');
    }
}
