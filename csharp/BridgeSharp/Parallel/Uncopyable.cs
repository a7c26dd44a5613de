using System.Reflection;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>Refuses what a copy field by field would not be a copy of.</summary>
internal static class Uncopyable
{
    /// <summary>Check what is to be copied, before any of it is.</summary>
    /// <exception cref="ArgumentException">Something that cannot be copied; the message names it.</exception>
    public static void Check(IReadOnlyList<(object Value, string Path)> copied)
    {
        var values = copied.Select(item => item.Value).ToHashSet(ReferenceEqualityComparer.Instance);
        foreach (var (value, path) in copied)
        {
            if (Reason(value, values) is { } reason)
            {
                throw new ArgumentException(
                    $"replicate: expected a model that can be copied, got {path} of type {value.GetType().Name}, {reason}: give a factory");
            }
        }
    }

    private static string? Reason(object value, IReadOnlySet<object> copied) => value switch
    {
        Tensor => value.GetType() == typeof(Tensor) || value.GetType() == typeof(Parameter) ? null : "a tensor of a class of its own",
        nn.Module module => NativeModule.Fault(module),
        Delegate function => Array.Exists(function.GetInvocationList(), part => part.Method.DeclaringType is null)
            ? "which was compiled at run time"
            : null,
        Task => "which runs once",
        Generator or WeakReference => null,
        nint or nuint or Pointer => "which holds a native resource",
        _ when ObjectLinks.IsWeak(value.GetType()) => null,
        _ when HasFinalizer(value.GetType()) => "which holds a native resource",
        _ when HashedKeys.AreLost(value, copied) => "which finds its keys by identity",
        _ => null,
    };

    /// <summary>Tell whether a type has to clean up: such an object owns more than its fields.</summary>
    private static bool HasFinalizer(Type type)
        => type.GetMethod("Finalize", BindingFlags.Instance | BindingFlags.NonPublic)!.DeclaringType != typeof(object);
}
