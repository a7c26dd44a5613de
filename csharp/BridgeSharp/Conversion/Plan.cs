using BridgeSharp.Parity;
using static TorchSharp.torch;

namespace BridgeSharp.Conversion;

/// <summary>One tensor on its way: its names, its shape, its dtype, and what is to be known.</summary>
/// <param name="source">Its name in the source.</param>
/// <param name="target">Its name in the target.</param>
/// <param name="shape">Its shape.</param>
/// <param name="dtype">Its dtype as written.</param>
/// <param name="note">What is to be known.</param>
public sealed record Row(string source, string target, IReadOnlyList<long> shape, string dtype, string note = "")
{
    /// <summary>Describe a tensor.</summary>
    internal static Row Of(string source, string target, Tensor tensor, string note = "")
        => new(source, target, tensor.shape, Digest.dtype_name(tensor.dtype), note);
}

/// <summary>The rows of a conversion, what did not match, and whether the file was written.</summary>
/// <param name="rows">What goes where.</param>
/// <param name="faults">What did not match, a line each.</param>
/// <param name="written">Whether the file was written.</param>
public sealed record Plan(IReadOnlyList<Row> rows, IReadOnlyList<string> faults, bool written = false);
