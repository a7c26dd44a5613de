using System.Runtime.InteropServices;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>Copies the tensors of a module: values, flags, and which of them share storage.</summary>
/// <remarks>
/// What is on the device of the module goes to that of the replica, anything else stays where it is. What a forward
/// left behind, and is no leaf of a graph, is copied as a value. Spec: R4.7.
/// </remarks>
internal sealed class TensorCopier
{
    private readonly Device from;
    private readonly Device to;
    private readonly Dictionary<nint, Tensor> copies = [];
    private readonly HashSet<(nint Storage, ScalarType Type)> shared;
    private readonly Dictionary<(nint Storage, ScalarType Type), Tensor> storages = [];

    /// <summary>Note which of the tensors share storage.</summary>
    public TensorCopier(IEnumerable<Tensor> tensors, Device from, Device to)
    {
        this.from = from;
        this.to = to;
        shared = [.. tensors.DistinctBy(Identity).GroupBy(Storage).Where(group => group.Key.Storage != 0 && group.Count() > 1)
            .Select(group => group.Key)];
    }

    /// <summary>The device of the replica, where it is another than that of the module; else null.</summary>
    public Device? Destination => Devices.Differ(to, from) ? to : null;

    /// <summary>Take a copy that is made already.</summary>
    public void Adopt(Tensor original, Tensor copy) => copies[Identity(original)] = copy.requires_grad_(original.requires_grad);

    /// <summary>Copy a tensor; two references to one tensor become two to one copy.</summary>
    public Tensor Copy(Tensor tensor)
    {
        if (!copies.TryGetValue(Identity(tensor), out var copy))
        {
            copies[Identity(tensor)] = copy = Data(tensor).requires_grad_(tensor.is_leaf && tensor.requires_grad);
        }

        var reference = copy.alias();
        return (tensor is Parameter ? NativeModule.Parameter(reference) : reference).DetachFromDisposeScope();
    }

    /// <summary>Copy a generator with its state.</summary>
    public Generator Copy(Generator generator)
    {
        var copy = new Generator(0, Place(generator.device));
        using var state = generator.get_state();
        copy.set_state(state);
        return copy;
    }

    /// <summary>Tell references to one tensor from others: the first word of what they point to is the tensor itself.</summary>
    public static nint Identity(Tensor tensor) => Marshal.ReadIntPtr(tensor.Handle);

    private Tensor Data(Tensor tensor)
    {
        var key = Storage(tensor);
        if (!shared.Contains(key))
        {
            return tensor.detach().to(Place(tensor.device), copy: true);
        }

        if (!storages.TryGetValue(key, out var storage))
        {
            var count = (long)NativeModule.Call<ulong>("THSStorage_nbytes", tensor.Handle) / tensor.ElementSize;
            storages[key] = storage = tensor.detach().as_strided([count], [1]).to(Place(tensor.device), copy: true);
        }

        using var view = storage.as_strided([.. tensor.shape], tensor.stride(), tensor.storage_offset());
        return empty(0, storage.dtype, storage.device).set_(view);
    }

    private Device Place(Device device) => Devices.Differ(device, from) ? device : to;

    /// <summary>Tell where the values of a tensor are.</summary>
    internal static (nint Storage, ScalarType Type) Storage(Tensor tensor) => tensor.is_sparse || tensor.device_type == DeviceType.META
        ? default
        : (NativeModule.Call<nint>("THSStorage_data_ptr", tensor.Handle), tensor.dtype);
}
