using System.Buffers.Binary;
using System.Text;

namespace BridgeSharp.Checkpoint;

/// <summary>Reads the opcodes that <c>torch.save</c> writes for state dicts, and refuses every other.</summary>
/// <remarks>
/// TorchSharp.PyBridge, on Razorvine.Pickle, makes objects of any name, gives each tensor a storage of its own, and fails
/// on those that begin inside of one. Spec: R26.10, R26.11. Source: torch/_weights_only_unpickler.py
/// </remarks>
internal sealed class Unpickler(Archive archive)
{
    private const byte Protocol = 2;
    private static readonly UTF8Encoding Strict = new(encoderShouldEmitUTF8Identifier: false, throwOnInvalidBytes: true);
    private readonly byte[] content = archive.Read("data.pkl");
    private readonly Storages storages = new(archive);
    private readonly PickleStack stack = new();
    private int at;

    /// <summary>Run the pickle to its end, and return what it leaves.</summary>
    public object? Load()
    {
        while (true)
        {
            var start = at;
            var code = Take(1)[0];
            try
            {
                if (code == '.')
                {
                    return stack.End();
                }

                if (!RunScalar(code) && !RunContainer(code))
                {
                    archive.Refuse("opcodes of state dicts", $"0x{code:x2} at {start}");
                }
            }
            catch (Exception error) when (error is InvalidDataException or DecoderFallbackException)
            {
                archive.Refuse("a sound pickle", $"0x{code:x2} out of place at {start}");
            }
        }
    }

    /// <summary>Run an opcode of values without parts.</summary>
    private bool RunScalar(byte code)
    {
        switch (code)
        {
            case 0x80: CheckProtocol(); break;
            case (byte)'c': stack.Push(Named()); break;
            case (byte)'N': stack.Push(null); break;
            case 0x88: stack.Push(true); break;
            case 0x89: stack.Push(false); break;
            case (byte)'J': stack.Push((long)BinaryPrimitives.ReadInt32LittleEndian(Take(4))); break;
            case (byte)'K': stack.Push((long)Take(1)[0]); break;
            case (byte)'M': stack.Push((long)BinaryPrimitives.ReadUInt16LittleEndian(Take(2))); break;
            case 0x8A: stack.Push(Long()); break;
            case (byte)'G': stack.Push(BinaryPrimitives.ReadDoubleBigEndian(Take(8))); break;
            case (byte)'X': stack.Push(Strict.GetString(Take(Word()))); break;
            case (byte)'Q': stack.Push(storages.Find(stack.Pop(1)[0])); break;
            default: return false;
        }

        return true;
    }

    /// <summary>Run an opcode of values with parts.</summary>
    private bool RunContainer(byte code)
    {
        switch (code)
        {
            case (byte)'(': stack.Mark(); break;
            case (byte)']': stack.Push(new List<object?>()); break;
            case (byte)'}': stack.Push(new OrderedDictionary<object, object?>()); break;
            case (byte)')': stack.Push(Array.Empty<object?>()); break;
            case 0x85 or 0x86 or 0x87: stack.Push(stack.Pop(code - 0x84)); break;
            case (byte)'t': stack.Push(stack.PopMark()); break;
            case (byte)'a': stack.Extend(stack.Pop(1)); break;
            case (byte)'e': stack.Extend(stack.PopMark()); break;
            case (byte)'s': stack.Update(stack.Pop(2)); break;
            case (byte)'u': stack.Update(stack.PopMark()); break;
            case (byte)'q': stack.Put(Take(1)[0]); break;
            case (byte)'r': stack.Put(Word()); break;
            case (byte)'h': stack.Get(Take(1)[0]); break;
            case (byte)'j': stack.Get(Word()); break;
            case (byte)'R': stack.Push(Rebuild.Make(stack.Pop(2), archive)); break;
            case (byte)'b': stack.Push(Built(stack.Pop(2))); break;
            default: return false;
        }

        return true;
    }

    private ReadOnlySpan<byte> Take(long count)
    {
        if (count > content.Length - at)
        {
            archive.Refuse("a whole pickle", $"its end at {content.Length}");
        }

        at += (int)count;
        return content.AsSpan(at - (int)count, (int)count);
    }

    private long Word() => BinaryPrimitives.ReadUInt32LittleEndian(Take(4));

    /// <summary>Refuse protocols with other opcodes.</summary>
    private void CheckProtocol()
    {
        var protocol = Take(1)[0];
        if (protocol != Protocol)
        {
            archive.Refuse($"pickle protocol {Protocol}", $"{protocol}");
        }
    }

    /// <summary>Read an integer of up to 64 bits.</summary>
    private long Long()
    {
        var bytes = Take(Take(1)[0]);
        if (bytes.Length > 8)
        {
            archive.Refuse("integers of 64 bits", $"one of {8 * bytes.Length}");
        }

        Span<byte> whole = stackalloc byte[8];
        whole.Fill(bytes is [.., >= 0x80] ? byte.MaxValue : (byte)0);
        bytes.CopyTo(whole);
        return BinaryPrimitives.ReadInt64LittleEndian(whole);
    }

    /// <summary>Read a name; nothing is looked up.</summary>
    private object Named()
    {
        var name = $"{Line()}.{Line()}";
        if (Rebuild.Dtypes.TryGetValue(name, out var dtype))
        {
            return dtype;
        }

        if (!Rebuild.Globals.Contains(name))
        {
            archive.Refuse("only what state dicts are made of", name);
        }

        return new Global(name);
    }

    /// <summary>Read up to the end of a line.</summary>
    private string Line()
    {
        var end = Array.IndexOf(content, (byte)'\n', at);
        var line = Take((end >= 0 ? end : content.Length) - at);
        Take(1);
        return Strict.GetString(line);
    }

    /// <summary>Give an OrderedDict the one attribute that state dicts have.</summary>
    private OrderedDict Built(object?[] pair)
    {
        if (pair is [OrderedDict dict, OrderedDictionary<object, object?> { Count: 1 } attributes and not OrderedDict]
            && attributes.TryGetValue("_metadata", out var metadata))
        {
            dict.metadata = metadata;
            return dict;
        }

        archive.Refuse("no state but _metadata of an OrderedDict", "another");
        return null!;
    }
}
