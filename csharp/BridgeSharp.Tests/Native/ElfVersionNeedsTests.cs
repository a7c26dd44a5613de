using System.Text;
using BridgeSharp.Native;
using Xunit;

namespace BridgeSharp.Tests.Native;

/// <summary>The edit of an ELF file changes one flag, and refuses what it cannot read.</summary>
public sealed class ElfVersionNeedsTests
{
    private const string Version = "GLIBCXX_3.4.32";

    private static readonly byte[] Library = File.ReadAllBytes(
        Path.Combine(AppContext.BaseDirectory, "runtimes", "linux-x64", "native", "libLibTorchSharp.so"));

    /// <summary>The flag of one version need is the only bit that changes.</summary>
    [Fact]
    public void One_flag_changes()
    {
        byte[] image = [.. Library];

        ElfVersionNeeds.Weaken(image, Version);

        var changed = Assert.Single(Enumerable.Range(0, image.Length), index => image[index] != Library[index]);
        Assert.Equal(2, image[changed] - Library[changed]);
    }

    /// <summary>Doing it twice is doing it once.</summary>
    [Fact]
    public void Weakening_is_idempotent()
    {
        byte[] once = [.. Library];
        ElfVersionNeeds.Weaken(once, Version);
        byte[] twice = [.. once];

        ElfVersionNeeds.Weaken(twice, Version);

        Assert.Equal(once, twice);
    }

    /// <summary>A version is matched as a whole word.</summary>
    [Theory]
    [InlineData("GLIBCXX_9.9.9")]
    [InlineData("GLIBCXX_3.4.3")]
    public void A_version_that_is_not_needed_is_refused(string version) =>
        Refused([.. Library], version, $"a need of version {version}, got none");

    /// <summary>A file that ends too early is refused, wherever it ends.</summary>
    [Theory]
    [InlineData(4)]
    [InlineData(40)]
    [InlineData(64)]
    [InlineData(1_000_000)]
    [InlineData(-1)]
    public void A_truncated_file_is_refused(int length)
    {
        var image = Library[..(length < 0 ? Library.Length + length : length)];
        var refusal = Assert.Throws<BadImageFormatException>(() => ElfVersionNeeds.Weaken(image, Version));
        Assert.EndsWith("the file is cut short", refusal.Message, StringComparison.Ordinal);
    }

    /// <summary>What is no 64-bit little-endian ELF file is refused by what it is.</summary>
    [Fact]
    public void A_foreign_file_is_refused()
    {
        Refused([], Version, "an ELF file");
        Refused(Encoding.ASCII.GetBytes("MZ, as Windows has it"), Version, "an ELF file");
        Refused([.. Library[..4], 1, 1, .. Library[6..]], Version, "64 bits, little endian, got class 1, data 1");
        Refused([.. Library[..4], 2, 2, .. Library[6..]], Version, "64 bits, little endian, got class 2, data 2");
    }

    /// <summary>A damaged file ends in a refusal or an edit, never in another error or a loop without end.</summary>
    [Fact]
    public void A_damaged_file_is_safe()
    {
        byte[] weak = [.. Library];
        ElfVersionNeeds.Weaken(weak, Version);
        var flag = weak.AsSpan().CommonPrefixLength(Library);
        var sections = (int)BitConverter.ToInt64(Library, 0x28);
        int[] offsets = [.. Fields(0, 0x40), .. Fields(flag - 0x160, flag + 0xD0), .. Fields(sections, Library.Length)];

        foreach (var (offset, value) in offsets.SelectMany(offset => new[] { (offset, 1u), (offset, uint.MaxValue) }))
        {
            byte[] image = [.. Library];
            BitConverter.TryWriteBytes(image.AsSpan(offset), value);
            Assert.True(Record.Exception(() => ElfVersionNeeds.Weaken(image, Version)) is null or BadImageFormatException);
        }
    }

    private static IEnumerable<int> Fields(int start, int end) =>
        Enumerable.Range(start / 4, (end - start) / 4).Select(field => field * 4);

    private static void Refused(byte[] image, string version, string reason)
    {
        var refusal = Assert.Throws<BadImageFormatException>(() => ElfVersionNeeds.Weaken(image, version));
        Assert.Contains($"expected {reason}", refusal.Message, StringComparison.Ordinal);
    }
}
