namespace BridgeSharp.Checkpoint;

/// <summary>The checksum of zip files, which .NET does not compare when it reads.</summary>
internal sealed class Crc32
{
    private static readonly uint[] Table = [.. Enumerable.Range(0, 256).Select(Entry)];
    private uint state = uint.MaxValue;

    /// <summary>The checksum of what was added.</summary>
    public uint Value => ~state;

    /// <summary>Add bytes.</summary>
    public void Append(ReadOnlySpan<byte> bytes)
    {
        foreach (var value in bytes)
        {
            state = Table[(byte)(state ^ value)] ^ (state >> 8);
        }
    }

    private static uint Entry(int index)
    {
        var value = (uint)index;
        for (var bit = 0; bit < 8; bit++)
        {
            value = (value >> 1) ^ ((value & 1) * 0xEDB88320);
        }

        return value;
    }
}
