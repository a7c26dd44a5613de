using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Security.Cryptography;
using BridgeSharp.Checkpoint;
using TorchSharp;
using Xunit;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>Files that are replaced as a whole.</summary>
[Collection(nameof(Serial))]
public sealed class AtomicTests : IDisposable
{
    private readonly CheckpointFolder folder = new();
    private readonly DisposeScope scope = NewDisposeScope();

    /// <summary>Remove the files.</summary>
    public void Dispose()
    {
        scope.Dispose();
        folder.Dispose();
    }

    /// <summary>A kill at any moment leaves the file of one save; the next save removes the rest. Spec: R26.7, R26.8.</summary>
    [Fact]
    public void Killed_saves_leave_a_whole_file()
    {
        for (var i = 0; i < 4; i++)
        {
            using var process = Saver.Start(folder.Path);
            try
            {
                Assert.Equal("0", process.StandardOutput.ReadLine());
                Thread.Sleep(RandomNumberGenerator.GetInt32(50));
            }
            finally
            {
                process.Kill();
                process.WaitForExit();
            }

            var tree = (OrderedDictionary<object, object?>)TreeFile.read(folder.Path)!;
            Assert.Equal((long)tree["step"]! * 300_000.0, ((Tensor)tree["weight"]!).sum(float64).item<double>());
        }

        File.WriteAllText(Path.Combine(folder.Name, $".{CheckpointFolder.File}.0123456789abcdef.tmp"), "");
        File.WriteAllText(Path.Combine(folder.Name, ".other.0123456789abcdef.tmp"), "");
        TreeFile.write(CheckpointFolder.State(), folder.Path);
        Assert.Equal([".other.0123456789abcdef.tmp", CheckpointFolder.File], folder.Entries);
    }

    /// <summary>Whatever fails before the end leaves the old file, and no other. Spec: R26.7.</summary>
    [Fact]
    public void Failures_leave_the_old_file()
    {
        TreeFile.write(CheckpointFolder.State(), folder.Path);

        var full = Assert.Throws<IOException>(() => Atomic.Replace(folder.Path, _ => throw new IOException("No space left on device")));
        Assert.Equal($"expected to write {folder.Path}, which is as it was, got No space left on device", full.Message);
        Assert.Throws<OperationCanceledException>(() => Atomic.Replace(folder.Path, _ => throw new OperationCanceledException()));

        CheckpointFolder.Exact(CheckpointFolder.State(), TreeFile.read(folder.Path));
        Assert.Equal([CheckpointFolder.File], folder.Entries);
    }

    /// <summary>No folder, and a folder in the place of the file, are errors that name it. Spec: R26.7.</summary>
    [Fact]
    public void Folders_that_cannot_take_it()
    {
        var missing = Assert.Throws<IOException>(() => TorchFile.save(null, Path.Combine(folder.Name, "none", "x")));
        Assert.StartsWith("expected to write ", missing.Message, StringComparison.Ordinal);
        Directory.CreateDirectory(folder.Path);
        Assert.Throws<IOException>(() => TorchFile.save(null, folder.Path));
        Assert.Equal([CheckpointFolder.File], folder.Entries);
    }

    /// <summary>A link stays a link, and what it points to is replaced. Spec: R26.7.</summary>
    [Fact]
    public void Links_stay()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "links need a privilege on Windows");
        var inner = Path.Combine(Directory.CreateDirectory(Path.Combine(folder.Name, "inner")).FullName, CheckpointFolder.File);
        File.CreateSymbolicLink(folder.Path, inner);
        TreeFile.write(CheckpointFolder.State(), folder.Path);
        Assert.Equal(inner, new FileInfo(folder.Path).LinkTarget);
        CheckpointFolder.Exact(CheckpointFolder.State(), TreeFile.read(inner));
    }

    /// <summary>What another is writing is not removed. Spec: R26.8.</summary>
    [Fact]
    public void A_save_leaves_that_of_another()
    {
        Atomic.Replace(folder.Path, _ =>
        {
            var others = folder.Entries.ToList();
            TreeFile.write(CheckpointFolder.State(), folder.Path);
            Assert.Equal([.. others, CheckpointFolder.File], folder.Entries);
        });
        Assert.Equal([CheckpointFolder.File], folder.Entries);
    }
}

/// <summary>The program that is killed while it saves: this one, told so by its environment.</summary>
internal static class Saver
{
    private const string Variable = "BRIDGE_TESTS_SAVE_TO";

    /// <summary>Start it.</summary>
    public static Process Start(string path)
    {
        var start = new ProcessStartInfo(Environment.ProcessPath!) { RedirectStandardOutput = true };
        if (Path.GetFileNameWithoutExtension(Environment.ProcessPath) == "dotnet")
        {
            start.ArgumentList.Add(typeof(Saver).Assembly.Location);
        }

        start.Environment[Variable] = path;
        return Process.Start(start)!;
    }

    /// <summary>Save until the end, before the tests begin.</summary>
    [ModuleInitializer]
    internal static void Run()
    {
        if (Environment.GetEnvironmentVariable(Variable) is not { } path)
        {
            return;
        }

        for (var step = 0L; ; step++)
        {
            using var scope = NewDisposeScope();
            TreeFile.write(new Dictionary<string, object> { ["weight"] = full(300_000, (float)step), ["step"] = step }, path);
            Console.WriteLine(step);
        }
    }
}
