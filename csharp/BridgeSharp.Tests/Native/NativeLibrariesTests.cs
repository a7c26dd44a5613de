using System.Text;
using BridgeSharp.Native;
using TorchSharp;
using Xunit;

namespace BridgeSharp.Tests.Native;

/// <summary>The loader inside this process, which has the native libraries already.</summary>
public sealed class NativeLibrariesTests
{
    private const string LibraryName = "libLibTorchSharp.so";

    /// <summary>Loading again, from many threads, is quiet, and TorchSharp works.</summary>
    [Fact]
    public void Loading_is_idempotent()
    {
        Enumerable.Range(0, 8).AsParallel().ForAll(_ => NativeLibraries.Load());

        using var sum = torch.ones(2, 3).sum();
        Assert.Equal(6, sum.item<float>());
    }

    /// <summary>A version of libstdc++ that is missing and really needed is refused at once, not at a later call.</summary>
    [Fact]
    public void A_version_that_is_really_needed_is_refused()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "version needs are Linux's");
        NativeLibraries.Load();
        var folder = Directory.CreateTempSubdirectory("bridge-test-");
        try
        {
            var file = Path.Combine(folder.FullName, LibraryName);
            File.WriteAllBytes(file, NeedingWhatNobodyHas());

            var refusal = Assert.Throws<DllNotFoundException>(() => LinuxLoader.Load(file));

            Assert.Contains("version `GLIBCXX_3.4.91' not found", refusal.Message, StringComparison.Ordinal);
            Assert.Contains($"without that need: {file}: ", refusal.Message, StringComparison.Ordinal);
            Assert.Contains("symbol", refusal.Message, StringComparison.Ordinal);
        }
        finally
        {
            folder.Delete(recursive: true);
        }
    }

    private static byte[] NeedingWhatNobodyHas()
    {
        var folder = Path.Combine(AppContext.BaseDirectory, "runtimes", "linux-x64", "native");
        var image = File.ReadAllBytes(Path.Combine(folder, LibraryName));
        ElfVersionNeeds.Weaken(image, "GLIBCXX_3.4.32");
        var needed = "GLIBCXX_3.4.21"u8;
        Encoding.ASCII.GetBytes("GLIBCXX_3.4.91").CopyTo(image.AsSpan(image.AsSpan().IndexOf(needed)));
        return image;
    }
}
