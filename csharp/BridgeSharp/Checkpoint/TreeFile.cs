namespace BridgeSharp.Checkpoint;

/// <summary>Trees in safetensors files, with a digest.</summary>
public static class TreeFile
{
    private const string Version = "1";
    private const string VersionKey = "bridge_version";
    private const string TreeKey = "bridge_tree";

    /// <summary>Write a tree to a safetensors file, in place of the old one as a whole.</summary>
    /// <remarks>
    /// The tensors of the dict under <c>model</c> have their own names there, so that plain tools open them; others have
    /// names that start with <c>__bridge__</c>. The rest is JSON in the metadata, and so is a SHA-256 of the whole file, in
    /// which its own 64 digits count as zeros. Spec: R26.4, R26.5, R26.7.
    /// </remarks>
    /// <param name="tree">
    /// Dictionaries with keys of type string and int, lists, tuples, arrays (which are tuples), tensors, numbers, texts,
    /// booleans and null.
    /// </param>
    /// <param name="path">The file.</param>
    /// <exception cref="ArgumentException">Something else, by its place in the tree.</exception>
    /// <exception cref="IOException">The file cannot be written; the old one is whole.</exception>
    public static void write(object? tree, string path)
    {
        var (text, tensors) = Document.Encode(tree);
        Safetensors.Store(tensors, path, new OrderedDictionary<string, string>
        {
            ["format"] = "pt",
            [VersionKey] = Version,
            [TreeKey] = text,
            [Safetensors.Seal] = Safetensors.Unsealed,
        });
    }

    /// <summary>Read the tree that <c>write</c> wrote, in either language.</summary>
    /// <remarks>
    /// A dict is an <c>OrderedDictionary&lt;object, object?&gt;</c>, a list a <c>List&lt;object?&gt;</c>, a tuple an
    /// <c>object?[]</c>, an int a <c>long</c>, a float a <c>double</c>. Spec: R26.4, R26.5.
    /// </remarks>
    /// <param name="path">The file.</param>
    /// <returns>The tree, with fresh tensors on the CPU.</returns>
    /// <exception cref="CheckpointException">A file of another maker or version, or one of which any bit has changed.</exception>
    /// <exception cref="FileNotFoundException">No such file.</exception>
    public static object? read(string path)
    {
        using var scope = TorchSharp.torch.NewDisposeScope();
        using var file = File.OpenRead(path);
        var name = Path.GetFileName(path);
        var (start, header) = Safetensors.Head(file, name);
        var metadata = header.Metadata;
        if (!new[] { VersionKey, TreeKey, Safetensors.Seal }.All(metadata.ContainsKey))
        {
            throw new CheckpointException($"read: expected a checkpoint in {name}, got a plain safetensors file: see load_file");
        }

        if (metadata[VersionKey] != Version)
        {
            throw new CheckpointException($"read: expected version {Version} in {name}, got '{metadata[VersionKey]}'");
        }

        using var digest = Safetensors.Begin(start, metadata);
        var tensors = Safetensors.Values(file, header, name, digest);
        var actual = Convert.ToHexStringLower(digest.GetHashAndReset());
        if (actual != metadata[Safetensors.Seal])
        {
            throw new CheckpointException($"read: expected SHA-256 {metadata[Safetensors.Seal]} of {name}, got {actual}");
        }

        return Parallel.Tree.MoveToOuterScope(Document.Decode(metadata[TreeKey], tensors, name));
    }
}
