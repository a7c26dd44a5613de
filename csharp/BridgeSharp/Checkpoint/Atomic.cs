using System.Runtime.InteropServices;
using System.Security.Cryptography;
using Microsoft.Win32.SafeHandles;

namespace BridgeSharp.Checkpoint;

/// <summary>Files that are replaced as a whole.</summary>
internal static partial class Atomic
{
    /// <summary>Write a file beside <paramref name="path"/>, bring it to the disk, then put it in its place.</summary>
    /// <remarks>
    /// Whatever happens before the end, a kill included, leaves the old file whole. What killed processes left beside it is
    /// removed. A link stays, and its target is replaced. Spec: R26.7, R26.8.
    /// </remarks>
    /// <param name="path">The file.</param>
    /// <param name="write">Writes it.</param>
    /// <exception cref="IOException">It cannot be written; the old file is whole.</exception>
    public static void Replace(string path, Action<FileStream> write)
    {
        var link = new FileInfo(path);
        var target = link.LinkTarget is null ? link.FullName : link.ResolveLinkTarget(returnFinalTarget: true)!.FullName;
        var folder = Path.GetDirectoryName(target)!;
        var random = Convert.ToHexStringLower(RandomNumberGenerator.GetBytes(8));
        var temporary = Path.Combine(folder, $".{Path.GetFileName(target)}.{random}.tmp");
        try
        {
            RemoveStale(target);
            WriteAndMove(temporary, target, write);
            ToDisk(folder);
        }
        catch (Exception error)
        {
            TryDelete(temporary);
            if (error is IOException or UnauthorizedAccessException)
            {
                throw new IOException($"expected to write {target}, which is as it was, got {error.Message}", error);
            }

            throw;
        }
    }

    private static void WriteAndMove(string temporary, string target, Action<FileStream> write)
    {
        // On Unix, no sharing is a lock that other processes see.
        using (var file = new FileStream(temporary, FileMode.CreateNew, FileAccess.ReadWrite, FileShare.None))
        {
            write(file);
            file.Flush(flushToDisk: true);
            if (!OperatingSystem.IsWindows())
            {
                // Under its lock, so that no other process takes it for stale.
                File.Move(temporary, target, overwrite: true);
            }
        }

        if (OperatingSystem.IsWindows())
        {
            File.Move(temporary, target, overwrite: true);
        }
    }

    /// <summary>Remove what killed processes left, and nothing that another process is writing.</summary>
    private static void RemoveStale(string target)
    {
        var start = $".{Path.GetFileName(target)}.";
        foreach (var path in Directory.EnumerateFiles(Path.GetDirectoryName(target)!, "*.tmp"))
        {
            var name = Path.GetFileName(path);
            var middle = name.StartsWith(start, StringComparison.Ordinal) && name.Length == start.Length + 20 ? name[start.Length..^4] : "no";
            if (middle.All(char.IsAsciiHexDigitLower))
            {
                TryDelete(path);
            }
        }
    }

    /// <summary>Delete a file that nobody else has open.</summary>
    private static void TryDelete(string path)
    {
        try
        {
            using var file = new FileStream(path, FileMode.Open, FileAccess.ReadWrite, FileShare.None);
            if (!OperatingSystem.IsWindows())
            {
                File.Delete(path);
                return;
            }
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            return;
        }

        File.Delete(path);
    }

    /// <summary>Bring the new name to the disk, where the system can.</summary>
    private static void ToDisk(string folder)
    {
        if (OperatingSystem.IsWindows())
        {
            return;
        }

        try
        {
            using var handle = new SafeFileHandle(Open(folder, 0), ownsHandle: true);
            if (!handle.IsInvalid)
            {
                RandomAccess.FlushToDisk(handle);
            }
        }
        catch (IOException)
        {
            // Not every file system can.
        }
    }

    [LibraryImport("libc", EntryPoint = "open", StringMarshalling = StringMarshalling.Utf8)]
    [DefaultDllImportSearchPaths(DllImportSearchPath.SafeDirectories)]
    private static partial int Open(string path, int flags);
}
