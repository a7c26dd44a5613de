using System.Text;
using BridgeSharp.Checkpoint;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Conversion;

/// <summary>Files of TorchSharp's own <c>Module.save</c>.</summary>
public static class TorchsharpFile
{
    /// <summary>Write a file that TorchSharp's <c>Module.load</c> reads, in place of the old one as a whole.</summary>
    /// <remarks>Spec: R29.2. Source: TorchSharp/NN/Module.cs, TorchSharp/Tensor/TensorExtensionMethods.cs</remarks>
    /// <param name="tensors">Names and tensors of any device, shape and strides.</param>
    /// <param name="path">The file.</param>
    /// <exception cref="ArgumentException">A dtype that the languages do not share, or a name that is no text.</exception>
    /// <exception cref="IOException">The file cannot be written; the old one is whole.</exception>
    public static void save_torchsharp(IReadOnlyDictionary<string, Tensor> tensors, string path)
    {
        foreach (var (name, tensor) in tensors)
        {
            Layout.Check(name, tensor);
        }

        Atomic.Replace(path, file =>
        {
            file.Write(Number(tensors.Count));
            foreach (var (name, tensor) in tensors)
            {
                var text = Encoding.UTF8.GetBytes(name);
                file.Write([.. Number(text.Length), .. text, .. Number((long)tensor.dtype), .. Number(tensor.dim()), .. tensor.shape.SelectMany(Number)]);
                TensorBytes.Write(tensor, file);
            }
        });
    }

    /// <summary>Read a file of TorchSharp's <c>Module.save</c>, whose bytes need no module to be understood.</summary>
    /// <remarks>Spec: R29.2.</remarks>
    /// <param name="path">The file.</param>
    /// <returns>Names and fresh tensors on the CPU, in their order.</returns>
    /// <exception cref="CheckpointException">The file is not whole, or another.</exception>
    /// <exception cref="FileNotFoundException">No such file.</exception>
    public static OrderedDictionary<string, Tensor> load_torchsharp(string path)
    {
        using var scope = NewDisposeScope();
        using var file = File.OpenRead(path);
        var reader = new TorchsharpReader(file, Path.GetFileName(path));
        var tensors = new OrderedDictionary<string, Tensor>();
        for (var left = reader.Number("a number of tensors"); left > 0; left--)
        {
            var name = reader.Text();
            if (tensors.ContainsKey(name))
            {
                reader.Refuse("every name once", $"'{name}' twice");
            }

            tensors[name] = reader.Tensor(name);
        }

        if (reader.Left > 0)
        {
            reader.Refuse("an end after the last tensor", $"{reader.Left} more bytes");
        }

        foreach (var tensor in tensors.Values)
        {
            tensor.MoveToOuterDisposeScope();
        }

        return tensors;
    }

    /// <summary>Write a whole number, 7 bits in a byte, the lowest first.</summary>
    private static byte[] Number(long value)
    {
        List<byte> content = [];
        for (; value >= 0x80; value >>= 7)
        {
            content.Add((byte)((value & 0x7F) | 0x80));
        }

        return [.. content, (byte)value];
    }
}
