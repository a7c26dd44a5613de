using System.Diagnostics;
using System.Diagnostics.CodeAnalysis;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Runtime.Loader;

namespace BridgeSharp.Native;

/// <summary>Loads libtorch and LibTorchSharp from where they are, before TorchSharp looks for them.</summary>
public static class NativeLibraries
{
    private const string TorchSharpName = "TorchSharp";
    private const string BindingName = "LibTorchSharp";

    private static readonly Lock Gate = new();
    private static volatile bool loaded;
    private static int watching;

    /// <summary>Loads the native libraries now; those that the process has already are left alone.</summary>
    /// <exception cref="DllNotFoundException">One does not load: why, where it was searched, what to do.</exception>
    public static void Load()
    {
        if (!loaded)
        {
            LoadFor(Assembly.Load(TorchSharpName));
        }
    }

    /// <summary>Loads the native libraries as soon as the program uses TorchSharp.</summary>
    /// <remarks>
    /// Called by every C# project that references the package, before its own code. Where the libraries do not load,
    /// TorchSharp's first native call throws what <see cref="Load"/> throws.
    /// </remarks>
    public static void LoadWithTorchSharp()
    {
        if (Interlocked.Exchange(ref watching, 1) != 0)
        {
            return;
        }

        AppDomain.CurrentDomain.AssemblyLoad += (_, arguments) => Attach(arguments.LoadedAssembly);
        foreach (var assembly in AppDomain.CurrentDomain.GetAssemblies())
        {
            Attach(assembly);
        }
    }

    /// <summary>Finds the file of TorchSharp's own native library.</summary>
    /// <returns>Its path, or null where no folder has it.</returns>
    internal static string? Binding() => new NativeSearch(Assembly.Load(TorchSharpName)).Find(FileName(BindingName)) is { } path && File.Exists(path) ? path : null;

    [SuppressMessage("Design", "CA1031", Justification = "The first native call throws it again.")]
    private static void Attach(Assembly assembly)
    {
        if (loaded || assembly.GetName().Name != TorchSharpName)
        {
            return;
        }

        try
        {
            LoadFor(assembly);
        }
        catch (Exception)
        {
            FailAtFirstCall(assembly);
        }
    }

    // TorchSharp swallows what its search meets, copies libtorch into the output folder and then names a wrong reason.
    // So its search is told that all is well, and its first native call meets the real one.
    private static void FailAtFirstCall(Assembly torchSharp)
    {
        AssemblyLoadContext.GetLoadContext(torchSharp)!.ResolvingUnmanagedDll += (asking, name) =>
            asking == torchSharp && name == BindingName ? NativeLibrary.GetMainProgramHandle() : 0;
        NativeLibrary.SetDllImportResolver(torchSharp, (name, _, _) =>
        {
            if (name == BindingName)
            {
                LoadFor(torchSharp);
            }

            return 0;
        });
    }

    private static void LoadFor(Assembly torchSharp)
    {
        lock (Gate)
        {
            if (loaded)
            {
                return;
            }

            var search = new NativeSearch(torchSharp);
            foreach (var fileName in new[] { "torch_cpu", "torch", BindingName }.Select(FileName))
            {
                if (!IsLoaded(fileName))
                {
                    LoadFile(search, fileName);
                }
            }

            loaded = true;
        }
    }

    private static void LoadFile(NativeSearch search, string fileName)
    {
        var path = search.Find(fileName);
        try
        {
            if (OperatingSystem.IsLinux())
            {
                LinuxLoader.Load(path);
            }
            else
            {
                NativeLibrary.Load(path);
            }
        }
        catch (Exception cause)
            when (cause is DllNotFoundException or BadImageFormatException or IOException or UnauthorizedAccessException)
        {
            throw search.Failure(path, cause.Message);
        }
    }

    private static string FileName(string name) =>
        OperatingSystem.IsWindows() ? $"{name}.dll" : OperatingSystem.IsMacOS() ? $"lib{name}.dylib" : $"lib{name}.so";

    private static bool IsLoaded(string fileName)
    {
        if (OperatingSystem.IsLinux())
        {
            return LinuxLoader.IsLoaded(fileName);
        }

        using var process = Process.GetCurrentProcess();
        return process.Modules.Cast<ProcessModule>()
            .Any(module => module.ModuleName.Equals(fileName, StringComparison.OrdinalIgnoreCase));
    }
}
