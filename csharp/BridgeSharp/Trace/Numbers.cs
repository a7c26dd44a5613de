using System.Numerics;
using System.Runtime.InteropServices;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Trace;

/// <summary>The values of a tensor as float64, read from its bytes; a complex one counts as two.</summary>
internal readonly ref struct Numbers
{
    private readonly ReadOnlySpan<byte> bytes;
    private readonly ScalarType dtype;
    private readonly int width;

    /// <summary>View the bytes of a tensor, in row-major order.</summary>
    public Numbers(ReadOnlySpan<byte> bytes, ScalarType dtype)
    {
        this.bytes = bytes;
        this.dtype = dtype switch
        {
            ScalarType.ComplexFloat32 => ScalarType.Float32,
            ScalarType.ComplexFloat64 => ScalarType.Float64,
            _ => dtype,
        };
        width = (int)this.dtype.ElementSize();
        Count = bytes.Length / width;
    }

    /// <summary>How many there are.</summary>
    public int Count { get; }

    /// <summary>Read the values from one on, as many as the target has room for.</summary>
    public void Read(int start, Span<double> target)
    {
        var part = bytes.Slice(start * width, target.Length * width);
        switch (dtype)
        {
            case ScalarType.Float64:
                MemoryMarshal.Cast<byte, double>(part).CopyTo(target);
                break;
            case ScalarType.Float32:
                Widen(MemoryMarshal.Cast<byte, float>(part), target);
                break;
            case ScalarType.BFloat16:
                Convert(MemoryMarshal.Cast<byte, ushort>(part), target, bits => BitConverter.UInt32BitsToSingle((uint)bits << 16));
                break;
            case ScalarType.Float16:
                Convert(MemoryMarshal.Cast<byte, Half>(part), target, value => (double)value);
                break;
            case ScalarType.Int64:
                Convert(MemoryMarshal.Cast<byte, long>(part), target, value => value);
                break;
            case ScalarType.Int32:
                Convert(MemoryMarshal.Cast<byte, int>(part), target, value => value);
                break;
            case ScalarType.Int16:
                Convert(MemoryMarshal.Cast<byte, short>(part), target, value => value);
                break;
            case ScalarType.Int8:
                Convert(MemoryMarshal.Cast<byte, sbyte>(part), target, value => value);
                break;
            default: // uint8 and bool
                Convert(part, target, value => value);
                break;
        }
    }

    private static void Widen(ReadOnlySpan<float> values, Span<double> target)
    {
        var narrow = MemoryMarshal.Cast<float, Vector<float>>(values);
        var wide = MemoryMarshal.Cast<double, Vector<double>>(target);
        for (var i = 0; i < narrow.Length; i++)
        {
            Vector.Widen(narrow[i], out wide[2 * i], out wide[(2 * i) + 1]);
        }

        for (var i = narrow.Length * Vector<float>.Count; i < values.Length; i++)
        {
            target[i] = values[i];
        }
    }

    private static void Convert<T>(ReadOnlySpan<T> values, Span<double> target, Func<T, double> convert)
    {
        for (var i = 0; i < values.Length; i++)
        {
            target[i] = convert(values[i]);
        }
    }
}
