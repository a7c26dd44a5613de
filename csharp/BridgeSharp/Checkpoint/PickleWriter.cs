using System.Buffers.Binary;
using System.Text;

namespace BridgeSharp.Checkpoint;

/// <summary>Writes the opcodes of pickles.</summary>
/// <remarks>Spec: R26.9. Source: Lib/pickle.py</remarks>
internal abstract class PickleWriter(Stream pickle)
{
    /// <summary>Call a name without arguments.</summary>
    protected void Called(string name)
    {
        Named(name);
        Code(')');
        Code('R');
    }

    /// <summary>Write a name.</summary>
    protected void Named(string name)
    {
        var dot = name.LastIndexOf('.');
        Put(Encoding.ASCII.GetBytes($"c{name[..dot]}\n{name[(dot + 1)..]}\n"));
    }

    /// <summary>Write a text.</summary>
    protected void Text(string text)
    {
        var content = Encoding.UTF8.GetBytes(text);
        Span<byte> head = stackalloc byte[5];
        head[0] = (byte)'X';
        BinaryPrimitives.WriteInt32LittleEndian(head[1..], content.Length);
        Put(head);
        Put(content);
    }

    /// <summary>Write a number of 64 bits.</summary>
    protected void Float(double value)
    {
        Span<byte> content = stackalloc byte[9];
        content[0] = (byte)'G';
        BinaryPrimitives.WriteDoubleBigEndian(content[1..], value);
        Put(content);
    }

    /// <summary>Write an integer.</summary>
    protected void Int(long value)
    {
        Span<byte> content = stackalloc byte[10];
        (content[0], content[1]) = (0x8A, 8);
        BinaryPrimitives.WriteInt64LittleEndian(content[2..], value);
        Put(value == (int)value ? Small((int)value) : content);
    }

    private static byte[] Small(int value)
    {
        var content = new byte[5];
        content[0] = (byte)'J';
        BinaryPrimitives.WriteInt32LittleEndian(content.AsSpan(1), value);
        return content;
    }

    /// <summary>Write an opcode, or none.</summary>
    protected void Code(char? code)
    {
        if (code is { } known)
        {
            pickle.WriteByte((byte)known);
        }
    }

    /// <summary>Write bytes.</summary>
    protected void Put(ReadOnlySpan<byte> content) => pickle.Write(content);
}
