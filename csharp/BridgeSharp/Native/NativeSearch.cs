using System.Reflection;
using System.Runtime.InteropServices;

namespace BridgeSharp.Native;

/// <summary>Knows where the native libraries of a TorchSharp can be, and what to say where they are not.</summary>
internal sealed class NativeSearch
{
    private const string Variable = "BRIDGE_LIBTORCH";

    private static readonly string Rid =
        (OperatingSystem.IsWindows() ? "win" : OperatingSystem.IsMacOS() ? "osx" : "linux")
        + (RuntimeInformation.ProcessArchitecture == Architecture.Arm64 ? "-arm64" : "-x64");

    private readonly string torchSharpVersion;
    private readonly string libtorchVersion;
    private readonly string[] folders;

    /// <summary>Reads which versions that TorchSharp needs and lists the folders, in the order of the search.</summary>
    /// <param name="torchSharp">The assembly of TorchSharp.</param>
    public NativeSearch(Assembly torchSharp)
    {
        torchSharpVersion = torchSharp.GetName().Version!.ToString(3);
        libtorchVersion = LibtorchVersion(torchSharp);
        folders = [.. Folders().Select(Path.GetFullPath).Select(Path.TrimEndingDirectorySeparator).Distinct()];
    }

    /// <summary>Finds a library in the first folder that has it.</summary>
    /// <param name="fileName">The name of its file.</param>
    /// <returns>Its full path; the name alone where no folder has it, for the system to look it up.</returns>
    public string Find(string fileName) =>
        folders.Select(folder => Path.Combine(folder, fileName)).FirstOrDefault(File.Exists, fileName);

    /// <summary>Describes why a library does not load, where it was searched, and what to do.</summary>
    /// <param name="path">The path that was tried, or the name where no folder has it.</param>
    /// <param name="reason">What the loader said.</param>
    /// <returns>The exception to throw.</returns>
    public DllNotFoundException Failure(string path, string reason)
    {
        var found = Path.IsPathFullyQualified(path);
        var listed = folders.Select(folder => $"  {folder}{(Directory.Exists(folder) ? "" : " (no such folder)")}");
        return new DllNotFoundException(
            $"""
            NativeLibraries.Load: expected {path} {(found ? "to load" : "in a folder below")}, got: {reason}
            TorchSharp {torchSharpVersion} needs libtorch {libtorchVersion}. Folders searched, in order, before the system's own:
            {string.Join(Environment.NewLine, listed)}
            Add the NuGet package libtorch-cpu-{Rid} {libtorchVersion} or TorchSharp-cpu {torchSharpVersion} to the project,
            or set {Variable} to the folder that holds libtorch.
            """);
    }

    // The constant behind torch.__version__, which cannot be asked before the native libraries are loaded.
    private static string LibtorchVersion(Assembly torchSharp)
    {
        const string name = "libtorchPackageVersion";
        var torch = torchSharp.GetType("TorchSharp.torch");
        return torch?.GetField(name, BindingFlags.NonPublic | BindingFlags.Static)?.GetRawConstantValue() is string version
            ? Version.Parse(version).ToString(3)
            : throw new MissingFieldException($"NativeLibraries.Load: expected torch.{name} in {torchSharp}, got none");
    }

    private static string[] Split(object? list, char separator) =>
        (list as string)?.Split(separator, StringSplitOptions.RemoveEmptyEntries | StringSplitOptions.TrimEntries) ?? [];

    private string[] Folders()
    {
        // The first is empty in a single-file program, the second where Python hosts .NET.
        string?[] programs = [Path.GetDirectoryName(typeof(NativeSearch).Assembly.Location), AppContext.BaseDirectory];
        string[] roots =
        [
            .. Split(Environment.GetEnvironmentVariable("NUGET_PACKAGES"), Path.PathSeparator),
            .. Split(AppContext.GetData("BridgeSharp.NuGetPackageFolders"), ';'),
            Path.Combine(Environment.GetFolderPath(Environment.SpecialFolder.UserProfile), ".nuget", "packages"),
        ];
        return
        [
            .. Split(Environment.GetEnvironmentVariable(Variable), Path.PathSeparator),
            .. programs.SelectMany(ProgramFolders),
            .. Split(AppContext.GetData("NATIVE_DLL_SEARCH_DIRECTORIES"), Path.PathSeparator),
            .. roots.SelectMany(PackageFolders),
        ];
    }

    private static string[] ProgramFolders(string? folder) =>
        string.IsNullOrEmpty(folder) ? [] : [folder, Path.Combine(folder, "runtimes", Rid, "native")];

    private string[] PackageFolders(string root) =>
    [
        Path.Combine(root, $"libtorch-cpu-{Rid}", libtorchVersion, "runtimes", Rid, "native"),
        Path.Combine(root, "torchsharp", torchSharpVersion, "runtimes", Rid, "native"),
    ];
}
