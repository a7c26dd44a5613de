using System.Diagnostics;
using System.Runtime.InteropServices;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>Clones a module of libtorch, options included, by libtorch's own virtual function.</summary>
/// <remarks>
/// TorchSharp wraps no clone, and does not tell options such as the dropout of an LSTM or the heads of an attention.
/// libtorch exports <c>torch::nn::Module::clone</c> of the base class: where it stands in the table of virtual functions
/// of a module that does not override it, there stands the clone of the others. Where that is not found, as with another
/// libtorch, cloning is not supported. Source: torch/csrc/api/include/torch/nn/cloneable.h
/// </remarks>
internal static unsafe class NativeClone
{
    private const int Virtuals = 8;

    private static readonly (string Library, string Name) Export =
        OperatingSystem.IsWindows()
            ? ("torch_cpu.dll", "?clone@Module@nn@torch@@UEBA?AV?$shared_ptr@VModule@nn@torch@@@std@@AEBV?$optional@UDevice@c10@@@5@@Z")
            : OperatingSystem.IsMacOS()
                ? ("libtorch_cpu.dylib", "_ZNK5torch2nn6Module5cloneERKNSt3__18optionalIN3c106DeviceEEE")
                : ("libtorch_cpu.so", "_ZNK5torch2nn6Module5cloneERKSt8optionalIN3c106DeviceEE");

    private static readonly Lazy<int> Slot = new(FindSlot);

    /// <summary>Tell whether the clone was found.</summary>
    public static bool IsSupported => Slot.Value >= 0;

    /// <summary>Clone a module; the random state stays, though libtorch initializes the clone before it copies.</summary>
    /// <param name="module">A handle, which points to a <c>std::shared_ptr</c>.</param>
    /// <returns>A pointer to another, allocated as C++ does it.</returns>
    public static nint Of(SafeHandle module)
    {
        using var state = get_rng_state();
        var self = Self(module);
        var clone = (delegate* unmanaged[MemberFunction]<nint**, long*, Shared>)Virtual(self)[Slot.Value];
        var sameDevice = 0L;
        var made = clone(self, &sameDevice);
        set_rng_state(state);
        GC.KeepAlive(module);

        var pointer = (nint*)NativeMemory.Alloc((nuint)(2 * sizeof(nint)));
        (pointer[0], pointer[1]) = (made.Module, made.Count);
        return (nint)pointer;
    }

    private static int FindSlot()
    {
        using var process = Process.GetCurrentProcess();
        var file = process.Modules.Cast<ProcessModule>().FirstOrDefault(module => module.ModuleName == Export.Library)?.FileName;
        if (file is null || !NativeLibrary.TryGetExport(NativeLibrary.Load(file), Export.Name, out var clone))
        {
            return -1;
        }

        using var bare = new Bare();
        return new ReadOnlySpan<nint>(Virtual(Self(NativeModule.Native(bare))), Virtuals).IndexOf(clone);
    }

    private static nint** Self(SafeHandle module) => *(nint***)module.DangerousGetHandle();

    private static nint* Virtual(nint** self) => *self;

    private sealed class Bare() : nn.Module(nameof(Bare));

    /// <summary>A <c>std::shared_ptr</c>; longer than two words, so that every ABI returns it through memory, as C++ does.</summary>
    [StructLayout(LayoutKind.Sequential)]
    private struct Shared
    {
        public nint Module;
        public nint Count;
        public nint Unused;
    }
}
