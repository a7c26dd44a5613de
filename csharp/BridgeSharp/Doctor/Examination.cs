using System.Runtime.InteropServices;
using System.Runtime.Intrinsics.X86;
using System.Security.Cryptography;
using System.Text;
using BridgeSharp.Native;
using BridgeSharp.Parity;
using static TorchSharp.torch;

namespace BridgeSharp.Doctor;

/// <summary>The doctor: looks at what the C# side needs, and says how to mend what is missing.</summary>
public static class Examination
{
    private const int Signs = 16;
    private static readonly string[] Variables = ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "ATEN_CPU_CAPABILITY", "MKL_CBWR", "BRIDGE_LIBTORCH"];

    /// <summary>Look at the C# side, from the plain to what needs all of it.</summary>
    /// <remarks>Spec: R32.1, R32.2.</remarks>
    /// <returns>What was found; nothing throws.</returns>
    public static IReadOnlyList<Finding> examine()
    {
        List<Finding> found =
        [
            new(".NET", "ok", RuntimeInformation.FrameworkDescription),
            new("system", "ok", $"{RuntimeInformation.OSDescription}, {RuntimeInformation.ProcessArchitecture}, {Environment.ProcessorCount} processors"),
            new("BridgeSharp", "ok", VersionOf(typeof(bridge))),
            new("TorchSharp", "ok", VersionOf(typeof(TorchSharp.torch))),
            new("environment", "ok", Given()),
        ];
        try
        {
            NativeLibraries.Load();
            found.Add(new("libtorch", "ok", $"{__version__}{Where()}"));
        }
        catch (DllNotFoundException error)
        {
            var lines = error.Message.ReplaceLineEndings("\n").Split('\n');
            found.Add(new("libtorch", "missing", lines[0], string.Join(" ", lines[^2..])));
            return found;
        }

        return [.. found, .. LibStdCxx(), .. Settings()];
    }

    /// <summary>Digest the battery's digests, at one thread, into one word: equal words, equal build family.</summary>
    /// <remarks>Spec: R32.4.</remarks>
    public static string fingerprint()
    {
        var threads = get_num_threads();
        set_num_threads(1);
        var text = string.Concat(Family.battery().Select(entry => $"{entry.Key}={entry.Value}\n"));
        set_num_threads(threads);
        return Convert.ToHexStringLower(SHA256.HashData(Encoding.UTF8.GetBytes(text)))[..Signs];
    }

    private static IEnumerable<Finding> Settings()
    {
        yield return new("CPU capability", "ok", Capability());
        yield return new("threads", "ok", $"{get_num_threads()}, between operations {get_num_interop_threads()}");
        yield return new("flags", "ok", $"CUDA {(cuda.is_available() ? "on" : "off")}, default {Digest.dtype_name(get_default_dtype())}; TorchSharp has no deterministic flag");
        yield return new("fingerprint", "ok", fingerprint());
    }

    private static IEnumerable<Finding> LibStdCxx()
    {
        if (Glibcxx.library() is not { } library || Glibcxx.newest(library) is not { } there
            || NativeLibraries.Binding() is not { } binding || Glibcxx.newest(binding) is not { } needed)
        {
            yield break;
        }

        var text = $"TorchSharp needs GLIBCXX_{needed}, the system has {there} ({library})";
        yield return Glibcxx.older(there, needed)
            ? new("libstdc++", "note", $"{text}; BridgeSharp loads a copy without that need")
            : new("libstdc++", "ok", text);
    }

    private static string Given()
    {
        var given = Variables.Where(name => Environment.GetEnvironmentVariable(name) is not null).Select(name => $"{name}={Environment.GetEnvironmentVariable(name)}");
        return string.Join(", ", given) is { Length: > 0 } text ? text : "no variable for threads or CPU is set";
    }

    private static string Where() => Glibcxx.Mapped(OperatingSystem.IsWindows() ? "torch_cpu" : "libtorch_cpu") is { } path ? $" ({path})" : "";

    // By the rule of ATen's cpu_capability(): libtorch itself tells it to Python alone.
    private static string Capability()
        => Environment.GetEnvironmentVariable("ATEN_CPU_CAPABILITY")?.ToUpperInvariant()
            ?? (Avx512F.VL.IsSupported && Avx512BW.IsSupported && Avx512DQ.IsSupported && Fma.IsSupported ? "AVX512"
                : Avx2.IsSupported && Fma.IsSupported ? "AVX2" : "DEFAULT");

    private static string VersionOf(Type type) => type.Assembly.GetName().Version!.ToString(3);
}
