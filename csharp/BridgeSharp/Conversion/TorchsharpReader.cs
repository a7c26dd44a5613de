using System.Diagnostics.CodeAnalysis;
using System.Text;
using BridgeSharp.Checkpoint;
using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Conversion;

/// <summary>Reads numbers, texts and tensors of a file of TorchSharp, none longer than the file.</summary>
internal sealed class TorchsharpReader(FileStream file, string name)
{
    /// <summary>The bytes that a whole number of 63 bits takes, 7 bits in each.</summary>
    private const int Longest = 9;

    private static readonly UTF8Encoding Strict = new(encoderShouldEmitUTF8Identifier: false, throwOnInvalidBytes: true);

    /// <summary>How many bytes have not been read.</summary>
    public long Left { get; private set; } = file.Length;

    /// <summary>Read a whole number of 63 bits.</summary>
    public long Number(string what)
    {
        var value = 0L;
        for (var place = 0; place < Longest; place++)
        {
            var part = Take(1, what)[0];
            value |= (long)(part & 0x7F) << (7 * place);
            if (part < 0x80)
            {
                return value;
            }
        }

        Refuse(what, "a number beyond 63 bits");
        return 0;
    }

    /// <summary>Read a name.</summary>
    public string Text()
    {
        var content = Take(Number("the length of a name"), "a name");
        var text = "";
        try
        {
            text = Strict.GetString(content);
        }
        catch (DecoderFallbackException)
        {
            Refuse("a name in UTF-8", "other bytes");
        }

        if (text.Any(char.IsControl))
        {
            Refuse("a name", "one with control characters");
        }

        return text;
    }

    /// <summary>Read a dtype, a shape and the values.</summary>
    public Tensor Tensor(string tensorName)
    {
        var kind = Number($"a dtype of '{tensorName}'");
        var dtype = (ScalarType)kind;
        if (kind > sbyte.MaxValue || !Entry.Dtypes.ContainsValue(dtype))
        {
            Refuse($"a dtype of '{tensorName}'", $"number {kind}");
        }

        var shape = Shape(tensorName);
        Int128 needed = Entry.ItemSize(dtype), reach = needed;
        foreach (var size in shape)
        {
            needed *= size;

            // Strides grow by the sizes that are not 0, also where there is no element.
            reach *= Math.Max(size, 1);
            if (reach > long.MaxValue)
            {
                break;
            }
        }

        if (needed > Left || reach > long.MaxValue)
        {
            Refuse($"{Left} bytes at most for '{tensorName}'", $"shape {Parallel.Text.Shape(shape)}");
        }

        var tensor = empty(shape, dtype);
        if (!TensorBytes.Read(tensor, file) || !TensorBytes.Sound(tensor))
        {
            Refuse($"bytes 0 and 1 as booleans of '{tensorName}'", "others");
        }

        Left -= (long)needed;
        return tensor;
    }

    /// <summary>Say what the file should have had.</summary>
    [DoesNotReturn]
    public void Refuse(string expected, string got)
        => throw new CheckpointException($"torchsharp: expected {expected} in {name}, got {got}");

    private long[] Shape(string tensorName)
    {
        var dimensions = Number($"dimensions of '{tensorName}'");
        if (dimensions > Left)
        {
            Refuse($"dimensions of '{tensorName}'", $"{dimensions}");
        }

        var shape = new long[dimensions];
        for (var index = 0; index < shape.Length; index++)
        {
            shape[index] = Number($"a shape of '{tensorName}'");
        }

        return shape;
    }

    private byte[] Take(long count, string what)
    {
        if (count > Left)
        {
            Refuse(what, "its end");
        }

        Left -= count;
        var content = new byte[count];
        file.ReadExactly(content);
        return content;
    }
}
