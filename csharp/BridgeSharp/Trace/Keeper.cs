using System.IO.Enumeration;
using System.IO.Hashing;
using BridgeSharp.Parity;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Trace;

/// <summary>A record, and the bytes of its tensor where the whole of it is kept.</summary>
internal readonly record struct Entry(Record Record, byte[]? Content);

/// <summary>Takes down tensors: nothing is drawn, no graph is kept, and what is copied is freed.</summary>
/// <remarks>Spec: R30.2, R30.6.</remarks>
/// <param name="full">Keep the tensors whole whose name, such as <c>fc1.*</c>, matches this pattern.</param>
/// <param name="full_steps">Only in these steps.</param>
internal sealed class Keeper(string? full, IReadOnlyCollection<int>? full_steps)
{
    /// <summary>Add a tensor to the record that says where it belongs.</summary>
    public Entry Entry(Record record, Tensor tensor)
    {
        var whole = full is not null
            && FileSystemName.MatchesSimpleExpression(full, record.name, ignoreCase: false)
            && (full_steps is null || full_steps.Contains(record.step));
        try
        {
            var contents = Observe(tensor, whole, out var content);
            return new Entry(record with { tensor = contents }, content);
        }
        catch (Exception error) when (error is System.Runtime.InteropServices.ExternalException or InvalidOperationException or NotImplementedException or ArgumentException)
        {
            return new Entry(record with { unobserved = error.Message.Split('\n')[0] }, null);
        }
    }

    /// <summary>Take down a tensor of any dtype and device; a sparse one as the dense one of its values.</summary>
    /// <remarks>Spec: R30.2.</remarks>
    public static Contents Observe(Tensor tensor, bool whole, out byte[]? content)
    {
        using var scope = NewDisposeScope();
        using var mode = no_grad();
        var plain = tensor.detach();
        var own = (plain.is_sparse ? plain.to_dense() : plain).cpu().resolve_conj().resolve_neg().contiguous();
        var bytes = own.numel() == 0 ? default : own.bytes;
        content = whole ? bytes.ToArray() : null;
        var (digest, summary) = (Convert.ToHexStringLower(XxHash128.Hash(bytes)), Summary.summarize(new Numbers(bytes, own.dtype)));
        return new Contents(Digest.dtype_name(own.dtype), own.shape, digest, summary);
    }
}
