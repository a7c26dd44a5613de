using System.Diagnostics;
using System.Text.Json.Nodes;
using Xunit;

namespace BridgeSharp.Tests.Native;

/// <summary>A program of a user's own, outside this repository, that knows BridgeSharp only as a package.</summary>
public sealed class Consumer : IDisposable
{
    private const string Version = "0.1.0-test";

    private const string Program =
        """
        using System;
        using TorchSharp;

        if (args.Length > 0)
        {
            Console.WriteLine("usage: consumer");
            return;
        }

        using var sum = torch.ones(2, 3).sum();
        Console.WriteLine(sum.item<float>());
        """;

    // All analyzers are on: what the package adds to a project must pass them too.
    private static readonly string Project =
        $"""
        <Project Sdk="Microsoft.NET.Sdk">
          <PropertyGroup>
            <OutputType>Exe</OutputType>
            <TargetFramework>net{Environment.Version.ToString(2)}</TargetFramework>
            <AnalysisMode>All</AnalysisMode>
            <EnforceCodeStyleInBuild>true</EnforceCodeStyleInBuild>
            <TreatWarningsAsErrors>true</TreatWarningsAsErrors>
            <NoWarn>CA1303</NoWarn>
            <RestoreSources>../feed</RestoreSources>
            <RestorePackagesPath>../packages</RestorePackagesPath>
            <RestoreFallbackFolders>{AppContext.GetData("BridgeSharp.NuGetPackageFolders")}</RestoreFallbackFolders>
          </PropertyGroup>
          <ItemGroup>
            <PackageReference Include="BridgeSharp" Version="{Version}" />
          </ItemGroup>
        </Project>
        """;

    private readonly DirectoryInfo root = Directory.CreateTempSubdirectory("bridge-consumer-");
    private readonly string project;

    /// <summary>Packs BridgeSharp and builds the program with the package.</summary>
    public Consumer()
    {
        project = root.CreateSubdirectory("project").FullName;
        File.WriteAllText(Path.Combine(project, "consumer.csproj"), Project);
        File.WriteAllText(Path.Combine(project, "Program.cs"), Program);
        Succeed("pack", Library(), "--no-build", "-c", Configuration(), "-o", "../feed", $"-p:Version={Version}");
        Succeed("build", "-o", "out", "-nodeReuse:false", "-p:UseSharedCompilation=false");
    }

    /// <summary>The built program, on a machine that has the packages it was built with.</summary>
    public string Assembly => Path.Combine(project, "out", "consumer.dll");

    /// <inheritdoc/>
    public void Dispose() => root.Delete(recursive: true);

    /// <summary>Makes a new folder beside the project.</summary>
    /// <returns>Its full path.</returns>
    public string NewFolder() => root.CreateSubdirectory(Path.GetRandomFileName()).FullName;

    /// <summary>Copies the built program, without what it knows of the machine that it was built on.</summary>
    /// <returns>The copy.</returns>
    public string AssemblyElsewhere()
    {
        var copy = NewFolder();
        foreach (var file in Directory.EnumerateFiles(Path.GetDirectoryName(Assembly)!, "*"))
        {
            File.Copy(file, Path.Combine(copy, Path.GetFileName(file)));
        }

        var settings = Path.Combine(copy, "consumer.runtimeconfig.json");
        var json = JsonNode.Parse(File.ReadAllText(settings))!;
        _ = json["runtimeOptions"]!["configProperties"]!.AsObject().Remove("BridgeSharp.NuGetPackageFolders");
        File.WriteAllText(settings, json.ToJsonString());
        return Path.Combine(copy, "consumer.dll");
    }

    /// <summary>Runs <c>dotnet</c> in the folder of the project.</summary>
    /// <param name="environment">Variables to set.</param>
    /// <param name="arguments">What follows <c>dotnet</c>.</param>
    /// <returns>The exit code and what was written to both streams.</returns>
    public (int Code, string Output, string Error) Run(Dictionary<string, string> environment, params string[] arguments)
    {
        var start = new ProcessStartInfo(Environment.GetEnvironmentVariable("DOTNET_HOST_PATH") ?? "dotnet", arguments)
        {
            WorkingDirectory = project,
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };
        foreach (var (name, value) in environment)
        {
            start.Environment[name] = value;
        }

        using var process = Process.Start(start)!;
        var error = process.StandardError.ReadToEndAsync();
        var output = process.StandardOutput.ReadToEnd();
        process.WaitForExit();
        return (process.ExitCode, output, error.Result);
    }

    private static string Configuration() => Path.GetFileName(Path.TrimEndingDirectorySeparator(AppContext.BaseDirectory));

    private static string Library()
    {
        var folder = new DirectoryInfo(AppContext.BaseDirectory);
        while (!File.Exists(Path.Combine(folder.FullName, "BridgeSharp.slnx")))
        {
            folder = folder.Parent ?? throw new FileNotFoundException($"no BridgeSharp.slnx above {AppContext.BaseDirectory}");
        }

        return Path.Combine(folder.FullName, "BridgeSharp");
    }

    private void Succeed(params string[] arguments)
    {
        var (code, output, error) = Run([], arguments);
        Assert.True(code == 0, $"dotnet {string.Join(' ', arguments)} ended with {code}:\n{output}{error}");
    }
}
