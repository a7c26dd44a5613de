using System.Reflection;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>The native object behind a TorchSharp module, which a copy needs anew.</summary>
internal static class NativeModule
{
    private static readonly FieldInfo Handle = Find("handle");
    private static readonly FieldInfo Boxed = Find("boxedModule");
    private static readonly FieldInfo Forward = Find("_forwardNative");
    private static readonly FieldInfo DeviceType = Find("_deviceType");
    private static readonly FieldInfo DeviceIndex = Find("_deviceIndex");

    /// <summary>Tell whether a field belongs to the native object.</summary>
    public static bool Owns(FieldInfo field) => field == Handle || field == Boxed || field == Forward;

    /// <summary>Give a copy a native object of its own, taken from a fresh module of the same kind.</summary>
    /// <exception cref="NotSupportedException">A module whose parameters live in libtorch.</exception>
    public static void Renew(nn.Module original, nn.Module copy, string path)
    {
        nn.Module donor = original switch
        {
            Sequential => nn.Sequential(),
            _ when Forward.GetValue(original) is not null => new Donor(original.GetName()),
            _ => throw new NotSupportedException(
                $"replicate: expected modules written in C#, got {path} of type {original.GetType().Name}, whose parameters live in libtorch"),
        };
        foreach (var field in new[] { Handle, Boxed, Forward })
        {
            field.SetValue(copy, field.GetValue(donor));
        }
    }

    /// <summary>Note the device of a copy, so that a later <c>to</c> knows where it is.</summary>
    public static void SetDevice(nn.Module module, Device device)
    {
        DeviceType.SetValue(module, device.type);
        DeviceIndex.SetValue(module, device.index);
    }

    private static FieldInfo Find(string name)
        => typeof(nn.Module).GetField(name, BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic)
            ?? throw new MissingFieldException(nameof(nn.Module), name);

    private sealed class Donor(string name) : nn.Module(name);
}
