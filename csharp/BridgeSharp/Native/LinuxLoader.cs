using System.Runtime.InteropServices;
using System.Text.RegularExpressions;
using Microsoft.Win32.SafeHandles;

namespace BridgeSharp.Native;

/// <summary>Loads libraries through Linux's own loader, with its own words where one does not load.</summary>
internal static partial class LinuxLoader
{
    private const string Loader = "libdl.so.2"; // glibc before 2.34 has these functions nowhere else
    private const int Lazy = 0x1; // RTLD_LAZY
    private const int Now = 0x2; // RTLD_NOW
    private const int NoLoad = 0x4; // RTLD_NOLOAD
    private const uint CloseOnExec = 0x1; // MFD_CLOEXEC

    /// <summary>Whether the process has a library of that name, whoever loaded it.</summary>
    /// <param name="fileName">The name, such as <c>libtorch_cpu.so</c>.</param>
    /// <returns>True where it is loaded.</returns>
    public static bool IsLoaded(string fileName) => Open(fileName, Lazy | NoLoad) != 0;

    /// <summary>Loads a library and finds all its symbols, so that none is missing later.</summary>
    /// <param name="path">The full path, or a name that the loader looks up by itself.</param>
    /// <exception cref="DllNotFoundException">The library does not load; the message is the loader's.</exception>
    /// <exception cref="BadImageFormatException">It needs a newer libstdc++ in a way that cannot be read.</exception>
    public static void Load(string path)
    {
        if (TryOpen(path, out var reason))
        {
            return;
        }

        // Built with a newer GCC than the system's, a library may need a version of libstdc++ and nothing in it.
        var need = NewerLibrary().Match(reason);
        var file = need.Groups["file"].Value;
        if (!need.Success || Path.GetFileName(file) != Path.GetFileName(path))
        {
            throw new DllNotFoundException(reason);
        }

        var image = File.ReadAllBytes(file);
        ElfVersionNeeds.Weaken(image, need.Groups["version"].Value);
        if (!TryOpenImage(image, file, out var second))
        {
            throw new DllNotFoundException($"{reason}; without that need: {second}");
        }
    }

    private static bool TryOpenImage(ReadOnlySpan<byte> image, string file, out string reason)
    {
        using var memory = CreateMemoryFile(Path.GetFileName(file), CloseOnExec);
        if (memory.IsInvalid)
        {
            reason = $"memfd_create: {Marshal.GetLastPInvokeErrorMessage()}";
            return false;
        }

        RandomAccess.Write(memory, image, 0);
        var path = $"/proc/self/fd/{memory.DangerousGetHandle()}";
        var opened = TryOpen(path, out reason);
        if (opened)
        {
            // The loader knows the library by this path from now on: the file stays open, so that no other gets it.
            var kept = false;
            memory.DangerousAddRef(ref kept);
        }

        reason = reason.Replace(path, file, StringComparison.Ordinal);
        return opened;
    }

    private static bool TryOpen(string path, out string reason)
    {
        // The first call binds dlerror itself: done later, that would overwrite the reason.
        _ = Error();
        var opened = Open(path, Now) != 0;
        reason = opened ? string.Empty : Marshal.PtrToStringUTF8(Error()) ?? "dlopen gave no reason";
        return opened;
    }

    [GeneratedRegex(@"version `(?<version>GLIBCXX_[\d.]+)' not found \(required by (?<file>.+)\)")]
    private static partial Regex NewerLibrary();

    [LibraryImport(Loader, EntryPoint = "dlopen", StringMarshalling = StringMarshalling.Utf8)]
    [DefaultDllImportSearchPaths(DllImportSearchPath.SafeDirectories)]
    private static partial nint Open(string path, int flags);

    [LibraryImport(Loader, EntryPoint = "dlerror")]
    [DefaultDllImportSearchPaths(DllImportSearchPath.SafeDirectories)]
    private static partial nint Error();

    [LibraryImport("libc", EntryPoint = "memfd_create", StringMarshalling = StringMarshalling.Utf8, SetLastError = true)]
    [DefaultDllImportSearchPaths(DllImportSearchPath.SafeDirectories)]
    private static partial SafeFileHandle CreateMemoryFile(string name, uint flags);
}
