using BridgeSharp.Parallel;
using TorchSharp.Modules;

namespace BridgeSharp.Optim;

/// <summary>Finds parameters that are one tensor, of which TorchSharp may make several objects: a tied weight, for one.</summary>
internal sealed class SameTensor : IEqualityComparer<Parameter>
{
    /// <summary>The comparer.</summary>
    public static readonly SameTensor Instance = new();

    /// <inheritdoc/>
    public bool Equals(Parameter? x, Parameter? y)
        => ReferenceEquals(x, y) || (x is not null && y is not null && Key(x) == Key(y));

    /// <inheritdoc/>
    public int GetHashCode(Parameter obj) => Key(obj).GetHashCode();

    /// <summary>Where the values are, and how they lie there; a tensor without values is only itself.</summary>
    private static (nint Storage, long Offset, string Shape) Key(Parameter parameter)
    {
        var storage = TensorCopier.Storage(parameter).Storage;
        return storage == 0
            ? (parameter.Handle, -1, "")
            : (storage, parameter.storage_offset(), $"{string.Join(',', parameter.shape)}:{string.Join(',', parameter.stride())}");
    }
}
