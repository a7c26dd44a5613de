using static TorchSharp.torch;

namespace BridgeSharp.Checkpoint;

/// <summary>Files of <c>torch.save</c>, without running what is in them.</summary>
public static class TorchFile
{
    /// <summary>Write a file that <c>torch.load</c> reads, in place of the old one as a whole.</summary>
    /// <remarks>Spec: R26.7, R26.9. Source: torch/serialization.py</remarks>
    /// <param name="value">
    /// A state dict, or any tree of dictionaries with keys of type string and int, lists, tuples, arrays (which are tuples),
    /// tensors, dtypes, numbers, texts, booleans and null; tensors that share storage share it when they are read.
    /// </param>
    /// <param name="path">The file.</param>
    /// <exception cref="ArgumentException">Something else, by its place in the tree.</exception>
    /// <exception cref="IOException">The file cannot be written; the old one is whole.</exception>
    public static void save(object? value, string path)
    {
        try
        {
            new Plain().Check(value);
        }
        catch (ArgumentException error)
        {
            throw new ArgumentException($"save: expected {error.Message}");
        }

        Atomic.Replace(path, file => Pickler.Write(value, file));
    }

    /// <summary>Read a file of <c>torch.save</c> that holds a state dict, or a tree of values and tensors.</summary>
    /// <remarks>
    /// Nothing in the file is run: an interpreter reads its pickle that knows the opcodes and names of state dicts, looks
    /// none of them up, and refuses every other by its name. An OrderedDict is an <see cref="OrderedDict"/>, other values are
    /// as <see cref="TreeFile.read"/> has them. Spec: R26.9, R26.10, R26.11.
    /// </remarks>
    /// <param name="path">The file.</param>
    /// <returns>The tree, with fresh tensors on the CPU; those that shared storage do so again.</returns>
    /// <exception cref="CheckpointException">The file is not whole, or holds something else.</exception>
    /// <exception cref="FileNotFoundException">No such file.</exception>
    public static object? load(string path)
    {
        using var scope = NewDisposeScope();
        using var file = File.OpenRead(path);
        using var archive = new Archive(file, Path.GetFileName(path));
        var value = new Unpickler(archive).Load();
        var plain = new Plain();
        try
        {
            plain.Check(value);
        }
        catch (ArgumentException error)
        {
            var split = error.Message.LastIndexOf(", got ", StringComparison.Ordinal);
            archive.Refuse(error.Message[..split], error.Message[(split + 6)..]);
        }

        foreach (var tensor in plain.Tensors)
        {
            tensor.MoveToOuterDisposeScope();
        }

        return value;
    }
}
