using System.Buffers.Binary;
using System.Text;

namespace BridgeSharp.Native;

/// <summary>Edits the table of an ELF library that names the versions it needs of other libraries.</summary>
/// <remarks>Layout: "Symbol Versioning" of the Linux Standard Base, and <c>elf.h</c>.</remarks>
internal static class ElfVersionNeeds
{
    private const int SectionHeaderSize = 64;
    private const uint VersionNeedSection = 0x6FFFFFFE; // SHT_GNU_verneed
    private const ushort WeakFlag = 0x2; // VER_FLG_WEAK

    /// <summary>Marks the need of one version as weak: the system's loader then takes libraries that lack it.</summary>
    /// <param name="image">The bytes of the library; changed in place.</param>
    /// <param name="version">The version, such as <c>GLIBCXX_3.4.32</c>.</param>
    /// <exception cref="BadImageFormatException">It is another format, cut short, or has no such need.</exception>
    public static void Weaken(Span<byte> image, string version)
    {
        Expect(image.StartsWith("\u007FELF"u8), "an ELF file", "other bytes");
        Expect(At(image, 4, 2).StartsWith<byte>([2, 1]), "64 bits, little endian", $"class {image[4]}, data {image[5]}");
        var (table, size, count) = (U64(image, 0x28), U16(image, 0x3A), U16(image, 0x3C));
        Expect(size == SectionHeaderSize, $"section headers of {SectionHeaderSize} bytes", $"{size}");
        _ = At(image, table, count * SectionHeaderSize);

        var found = false;
        for (var section = table; count > 0; count--, section += SectionHeaderSize)
        {
            if (U32(image, section + 4) == VersionNeedSection)
            {
                var strings = table + ((ulong)U32(image, section + 40) * SectionHeaderSize);
                found |= WeakenIn(image, U64(image, section + 24), U64(image, strings + 24), version);
            }
        }

        Expect(found, $"a need of version {version}", "none");
    }

    private static bool WeakenIn(Span<byte> image, ulong library, ulong strings, string version)
    {
        var wanted = Encoding.ASCII.GetBytes(version + '\0');
        var found = false;
        for (var nextLibrary = 1u; nextLibrary != 0; library += nextLibrary)
        {
            nextLibrary = U32(image, library + 12);
            var need = library + U32(image, library + 8);
            for (var nextNeed = 1u; nextNeed != 0; need += nextNeed)
            {
                nextNeed = U32(image, need + 12);
                if (At(image, strings + U32(image, need + 8), 1).StartsWith(wanted))
                {
                    var flags = (ushort)(U16(image, need + 4) | WeakFlag);
                    BinaryPrimitives.WriteUInt16LittleEndian(At(image, need + 4, sizeof(ushort)), flags);
                    found = true;
                }
            }
        }

        return found;
    }

    private static ushort U16(Span<byte> image, ulong offset) =>
        BinaryPrimitives.ReadUInt16LittleEndian(At(image, offset, sizeof(ushort)));

    private static uint U32(Span<byte> image, ulong offset) =>
        BinaryPrimitives.ReadUInt32LittleEndian(At(image, offset, sizeof(uint)));

    private static ulong U64(Span<byte> image, ulong offset) =>
        BinaryPrimitives.ReadUInt64LittleEndian(At(image, offset, sizeof(ulong)));

    private static Span<byte> At(Span<byte> image, ulong offset, int needed)
    {
        var there = offset < (ulong)image.Length ? image.Length - (int)offset : 0;
        return there >= needed
            ? image[(int)offset..]
            : throw Refusal($"{needed} bytes at offset {offset}", $"{there}: the file is cut short");
    }

    private static void Expect(bool met, string expected, string actual)
    {
        if (!met)
        {
            throw Refusal(expected, actual);
        }
    }

    private static BadImageFormatException Refusal(string expected, string actual) =>
        new($"ElfVersionNeeds.Weaken: expected {expected}, got {actual}");
}
