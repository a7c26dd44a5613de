using System.Text.Json.Nodes;
using BridgeSharp.Parity;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Host;

/// <summary>A model's state, out of C# and into it, through the segment.</summary>
internal static class State
{
    private const long Alignment = 64;

    /// <summary>List the tensors of a state and where each goes in the segment.</summary>
    public static object Manifest(Session session)
    {
        var (tensors, bytes) = Layout(session);
        return new { tensors, bytes };
    }

    /// <summary>Copy the state into the segment at the places of the manifest.</summary>
    public static object Write(Session session, Segment segment)
    {
        foreach (var (entry, tensor) in Layout(session).Tensors.Zip(session.State().Values))
        {
            segment.Write(tensor, entry.offset);
        }

        return new { };
    }

    /// <summary>Load a state out of the segment into every replica, or into a loop.</summary>
    public static object Read(Session session, JsonObject arguments, Segment segment)
    {
        using var scope = NewDisposeScope();
        var state = arguments["tensors"]!.AsArray().ToDictionary(entry => (string)entry!["name"]!, entry => segment.Read(entry!));
        if (arguments["strict"] is { } strict && !(bool)strict)
        {
            var own = session.State();
            state = state.Where(entry => own.ContainsKey(entry.Key)).ToDictionary();
            foreach (var (name, tensor) in own)
            {
                state.TryAdd(name, tensor);
            }
        }

        session.Load(state);
        return new { };
    }

    private static (List<Entry> Tensors, long Bytes) Layout(Session session)
    {
        var entries = new List<Entry>();
        long offset = 0;
        foreach (var (name, tensor) in session.State())
        {
            var bytes = tensor.NumberOfElements * tensor.ElementSize;
            var kind = tensor is Parameter ? "parameter" : "buffer";
            entries.Add(new Entry(name, Digest.dtype_name(tensor.dtype), tensor.shape, offset, bytes, kind, tensor.requires_grad));
            offset += (bytes + Alignment - 1) / Alignment * Alignment;
        }

        return (entries, offset);
    }

    private sealed record Entry(string name, string dtype, IReadOnlyList<long> shape, long offset, long bytes, string kind, bool trainable);
}
