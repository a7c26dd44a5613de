using Xunit;

namespace BridgeSharp.Tests.Native;

/// <summary>The package in a program that touches <c>torch</c> first and never names BridgeSharp.</summary>
/// <param name="consumer">That program, built once.</param>
[Trait("Category", "slow")]
public sealed class PackageTests(Consumer consumer) : IClassFixture<Consumer>
{
    /// <summary>A reference to the package is all that TorchSharp needs to find and load its libraries.</summary>
    [Fact]
    public void Torch_works_without_a_line()
    {
        var (code, output, error) = consumer.Run([], consumer.Assembly);

        Assert.True(code == 0, error);
        Assert.Equal("6", output.Trim());
    }

    /// <summary>The libraries load without a file, so that none can be left behind.</summary>
    [Fact]
    public void No_file_is_left_behind()
    {
        var (temporary, home) = (consumer.NewFolder(), consumer.NewFolder());
        var environment = new Dictionary<string, string>
        {
            ["TMPDIR"] = temporary,
            ["TMP"] = temporary,
            ["TEMP"] = temporary,
            ["HOME"] = home,
            ["DOTNET_EnableDiagnostics"] = "0",
        };

        var (code, _, error) = consumer.Run(environment, consumer.Assembly);

        Assert.True(code == 0, error);
        Assert.Empty(Directory.EnumerateFileSystemEntries(temporary));
        Assert.Empty(Directory.EnumerateFileSystemEntries(home));
    }

    /// <summary>Where libtorch is missing, the first thing said is that, where it was searched, and what to do.</summary>
    [Fact]
    public void Missing_libtorch_is_explained()
    {
        var (environment, empty) = Elsewhere();

        var (code, output, error) = consumer.Run(environment, consumer.AssemblyElsewhere());

        Assert.NotEqual(0, code);
        Assert.Empty(output);
        var first = string.Join('\n', error.Split('\n').Take(2));
        Assert.Matches(@"NativeLibraries\.Load: expected \w*torch_cpu\.\w+ in a folder below, got: .+torch_cpu", first);
        Assert.Contains(empty, error, StringComparison.Ordinal);
        Assert.Matches(@"Add the NuGet package libtorch-cpu-\S+ 2\.10\.0 or TorchSharp-cpu", error);
        Assert.Contains("set BRIDGE_LIBTORCH", error, StringComparison.Ordinal);
    }

    /// <summary>A program that does not come to use TorchSharp does not miss libtorch.</summary>
    [Fact]
    public void Help_needs_no_libtorch()
    {
        var (code, output, error) = consumer.Run(Elsewhere().Environment, consumer.AssemblyElsewhere(), "--help");

        Assert.True(code == 0, error);
        Assert.Equal("usage: consumer", output.Trim());
    }

    /// <summary>BRIDGE_LIBTORCH comes first; a library there that does not load is named with the loader's reason.</summary>
    [Fact]
    public void A_broken_library_is_named()
    {
        var folder = consumer.NewFolder();
        string[] names = ["libtorch_cpu.so", "libtorch_cpu.dylib", "torch_cpu.dll"];
        Array.ForEach(names, name => File.WriteAllText(Path.Combine(folder, name), "no library"));

        var (code, _, error) = consumer.Run(new() { ["BRIDGE_LIBTORCH"] = folder }, consumer.Assembly);

        Assert.NotEqual(0, code);
        Assert.Contains($"NativeLibraries.Load: expected {folder}", error, StringComparison.Ordinal);
        Assert.Matches(@"torch_cpu\.\w+ to load, got: .+\S", error);
    }

    /// <summary>A project can leave the initializer out.</summary>
    [Theory]
    [InlineData("true", true)]
    [InlineData("false", false)]
    public void The_initializer_is_optional(string property, bool expected)
    {
        var (_, output, _) = consumer.Run([], "msbuild", "-getItem:Compile", $"-p:BridgeSharpLoadNative={property}");

        Assert.Contains("Program.cs", output, StringComparison.Ordinal);
        Assert.Equal(expected, output.Contains("NativeInitializer.cs", StringComparison.Ordinal));
    }

    private (Dictionary<string, string> Environment, string Empty) Elsewhere()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "no variable moves the profile, which has the packages");
        var empty = consumer.NewFolder();
        var environment = new Dictionary<string, string>
        {
            ["BRIDGE_LIBTORCH"] = empty,
            ["HOME"] = empty,
            ["NUGET_PACKAGES"] = empty,
        };
        return (environment, empty);
    }
}
