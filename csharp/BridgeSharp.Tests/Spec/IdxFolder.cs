using System.Buffers.Binary;

namespace BridgeSharp.Tests.Spec;

/// <summary>A temporary folder of IDX files.</summary>
internal sealed class IdxFolder : IDisposable
{
    private readonly DirectoryInfo folder = Directory.CreateTempSubdirectory("bridge-test-");

    /// <summary>Its path.</summary>
    public string Name => folder.FullName;

    /// <summary>Remove it.</summary>
    public void Dispose() => folder.Delete(recursive: true);

    /// <summary>Write the two files of a split, or those that are given.</summary>
    public void Write(string stem, long[]? images, Func<long, long> point, byte[]? labels)
    {
        if (images is not null)
        {
            var count = images.Aggregate(1L, (product, size) => product * size);
            Write($"{stem}-images-idx3-ubyte", images, [.. Enumerable.Range(0, (int)count).Select(i => (byte)point(i))]);
        }

        if (labels is not null)
        {
            Write($"{stem}-labels-idx1-ubyte", [labels.Length], labels);
        }
    }

    private void Write(string name, long[] shape, byte[] values)
    {
        var head = new byte[4 + (4 * shape.Length)];
        head[2] = 8;
        head[3] = (byte)shape.Length;
        for (var axis = 0; axis < shape.Length; axis++)
        {
            BinaryPrimitives.WriteInt32BigEndian(head.AsSpan(4 + (4 * axis)), (int)shape[axis]);
        }

        File.WriteAllBytes(Path.Combine(Name, name), [.. head, .. values]);
    }
}
