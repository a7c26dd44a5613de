using System.Diagnostics.CodeAnalysis;
using BridgeSharp.Parallel;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp;

/// <summary>A layer in parts, each a layer on a device of its own.</summary>
public abstract class SplitLayer : nn.Module<Tensor, Tensor>
{
    /// <summary>Keep the parts.</summary>
    /// <param name="name">The type of the layer.</param>
    /// <param name="parts">The parts, on their devices.</param>
    /// <param name="devices">One per part; the outputs are on the first.</param>
    /// <param name="dim">Along which the parts' weights make the whole.</param>
    private protected SplitLayer(
        string name, IReadOnlyList<nn.Module<Tensor, Tensor>> parts, IReadOnlyList<Device> devices, int dim)
        : base(name)
    {
        this.parts = nn.ModuleList([.. parts]);
        this.devices = devices;
        this.dim = dim;
        register_module(nameof(parts), this.parts);
    }

    /// <summary>The parts, on their devices.</summary>
    public ModuleList<nn.Module<Tensor, Tensor>> parts { get; }

    /// <summary>One device per part; the outputs are on the first.</summary>
    public IReadOnlyList<Device> devices { get; }

    /// <summary>Along which the parts' weights make the whole.</summary>
    public int dim { get; }

    /// <summary>List the split layers of a module, each with the names of its parts up to their numbers.</summary>
    internal static IEnumerable<(string Prefix, SplitLayer Layer)> Within(nn.Module module, string name = "")
        => module is SplitLayer layer
            ? [($"{name}parts.", layer)]
            : module.named_children().SelectMany(child => Within(child.module, $"{name}{child.name}."));

    /// <summary>Run each part on its shard, started in order: GPUs run at once.</summary>
    private protected IReadOnlyList<Tensor> Run(IReadOnlyList<Tensor> shards)
        => [.. parts.Zip(shards, devices).Select(call => call.First.call(call.Second.to(call.Third)))];

    /// <summary>Share out features or channels: the sizes differ by at most one, the larger ones first.</summary>
    /// <remarks>Spec: R24.5.</remarks>
    /// <exception cref="ArgumentException">More parts than there are features or channels.</exception>
    private protected static long[] Shares(string name, long count, string what, int parts)
        => parts <= count
            ? [.. Enumerable.Range(0, parts).Select(index => (count + parts - 1 - index) / parts)]
            : throw new ArgumentException($"{name}: expected at least {parts} {what} for {parts} devices, got {count}");

    /// <summary>Copy a slice of a parameter to a device; a frozen one stays frozen.</summary>
    [return: NotNullIfNotNull(nameof(slice))]
    private protected static Parameter? Own(Tensor? slice, Device device)
        => slice is null ? null : NativeModule.Parameter(slice.detach().to(device, copy: true).requires_grad_(slice.requires_grad));
}

public static partial class bridge
{
    /// <summary>Return the state of a module with split layers, under the names of the undivided module.</summary>
    /// <remarks>Spec: R24.6.</remarks>
    /// <param name="module">The module, or a split layer itself.</param>
    /// <param name="gradients">Take the gradients of its parameters instead, those that are there.</param>
    /// <returns>
    /// Names and tensors, in the order of the undivided module: what was joined is fresh, on the device of part 0; other
    /// tensors are the module's own.
    /// </returns>
    public static OrderedDictionary<string, Tensor> whole_state(nn.Module module, bool gradients = false)
    {
        using var mode = no_grad();
        var splits = SplitLayer.Within(module).ToList();
        var named = gradients
            ? module.named_parameters().Select(own => (Name: own.name, Tensor: own.parameter.grad)).Where(own => own.Tensor is not null)
            : StateDict.Of(module).Select(own => (Name: own.Key, Tensor: (Tensor?)own.Value));
        return new OrderedDictionary<string, Tensor>(named
            .GroupBy(own => Whole(own.Name), own => own.Tensor!)
            .Select(parts => KeyValuePair.Create(parts.Key.Name, Joined([.. parts], parts.Key.Dim))));

        (string Name, int Dim) Whole(string name)
        {
            var (prefix, layer) = splits.Find(split => name.StartsWith(split.Prefix, StringComparison.Ordinal));
            var last = name.Split('.')[^1];
            return layer is null ? (name, 0) : (prefix[..^"parts.".Length] + last, last == "weight" ? layer.dim : 0);
        }

        static Tensor Joined(IReadOnlyList<Tensor> tensors, int dim)
            => tensors is [var one] ? one : gather(tensors, tensors[0].device, dim);
    }
}
