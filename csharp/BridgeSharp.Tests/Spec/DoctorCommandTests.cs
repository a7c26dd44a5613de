using System.Diagnostics;
using System.Text.Json.Nodes;
using Xunit;

namespace BridgeSharp.Tests.Spec;

/// <summary>The command line's doctor, in a process of its own.</summary>
public sealed class DoctorCommandTests : IDisposable
{
    private const string Name = "BridgeSharp.Cli";
    private static readonly string Built = Path.GetFullPath(
        Path.Combine(AppContext.BaseDirectory, "..", "..", Name, Path.GetFileName(Path.TrimEndingDirectorySeparator(AppContext.BaseDirectory))));

    private readonly DirectoryInfo root = Directory.CreateTempSubdirectory("bridge-doctor-");

    /// <inheritdoc/>
    public void Dispose() => root.Delete(recursive: true);

    /// <summary>Where all is there it ends with 0, in words and in JSON. Spec: R32.5.</summary>
    [Theory]
    [InlineData("usable", "doctor")]
    [InlineData("\"usable\": true", "doctor", "--json")]
    public void Usable(string expected, params string[] arguments)
    {
        var (code, output) = Run(Built, arguments);
        Assert.True(code == 0, output);
        Assert.Contains(expected, output, StringComparison.Ordinal);
    }

    /// <summary>Without libtorch it says what to add, and ends with 1. Spec: R32.2, R32.5.</summary>
    [Fact]
    public void Without_libtorch()
    {
        foreach (var file in Directory.EnumerateFiles(Built))
        {
            File.Copy(file, Path.Combine(root.FullName, Path.GetFileName(file)));
        }

        var settings = Path.Combine(root.FullName, $"{Name}.runtimeconfig.json");
        var json = JsonNode.Parse(File.ReadAllText(settings))!;
        _ = json["runtimeOptions"]!["configProperties"]!.AsObject().Remove("BridgeSharp.NuGetPackageFolders");
        File.WriteAllText(settings, json.ToJsonString());
        var (code, output) = Run(root.FullName, "doctor");
        Assert.True(code == 1, output);
        Assert.Contains("x libtorch", output, StringComparison.Ordinal);
        Assert.Contains("-> Add the NuGet package libtorch-cpu-", output, StringComparison.Ordinal);
        Assert.EndsWith("not usable: libtorch missing", output.TrimEnd(), StringComparison.Ordinal);
    }

    private (int Code, string Output) Run(string folder, params string[] arguments)
    {
        string[] all = [Path.Combine(folder, $"{Name}.dll"), .. arguments];
        var start = new ProcessStartInfo(Environment.GetEnvironmentVariable("DOTNET_HOST_PATH") ?? "dotnet", all) { RedirectStandardOutput = true };
        if (folder == root.FullName)
        {
            start.Environment["HOME"] = start.Environment["USERPROFILE"] = start.Environment["NUGET_PACKAGES"] = root.FullName;
        }

        using var process = Process.Start(start)!;
        var output = process.StandardOutput.ReadToEnd();
        process.WaitForExit();
        return (process.ExitCode, output);
    }
}
