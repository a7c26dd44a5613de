using System.Diagnostics;
using System.Runtime.InteropServices;
using System.Text;
using System.Text.RegularExpressions;

namespace BridgeSharp.Doctor;

/// <summary>Which version of libstdc++ a library needs, and which the system has.</summary>
public static partial class Glibcxx
{
    private const string Library = "libstdc++.so.6";

    /// <summary>Find the newest version of libstdc++ that a library names: it needs it, or it has it.</summary>
    /// <remarks>Spec: R32.3.</remarks>
    public static string? newest(string path)
        => Name().Matches(Encoding.Latin1.GetString(File.ReadAllBytes(path))).Select(match => match.Groups[1].Value).MaxBy(Version.Parse);

    /// <summary>Tell whether a version is older than another.</summary>
    /// <remarks>Spec: R32.3.</remarks>
    public static bool older(string version, string other) => Version.Parse(version) < Version.Parse(other);

    /// <summary>Find the libstdc++ of this process; Linux alone has one of that name.</summary>
    public static string? library()
        => OperatingSystem.IsLinux() && NativeLibrary.TryLoad(Library, out _) ? Mapped("libstdc++.so") : null;

    /// <summary>Find a library that this process has loaded.</summary>
    /// <param name="name">What its file's name starts with.</param>
    internal static string? Mapped(string name)
    {
        using var process = Process.GetCurrentProcess();
        return process.Modules.Cast<ProcessModule>().Select(module => module.FileName)
            .FirstOrDefault(path => Path.GetFileName(path).StartsWith(name, StringComparison.Ordinal));
    }

    [GeneratedRegex(@"GLIBCXX_(\d+(?:\.\d+)+)\0")]
    private static partial Regex Name();
}
