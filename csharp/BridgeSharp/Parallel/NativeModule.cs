using System.Reflection;
using System.Runtime.InteropServices;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>The native object behind a TorchSharp module, which a copy needs anew.</summary>
/// <remarks>
/// That of a module written in C# is an empty shell. RNN, LSTM, GRU and their cells, Embedding, EmbeddingBag,
/// MultiheadAttention and the Transformers have parameters and options in theirs. Spec: R4.6.
/// </remarks>
internal static class NativeModule
{
    private static readonly FieldInfo Handle = Find("handle");
    private static readonly FieldInfo Boxed = Find("boxedModule");
    private static readonly FieldInfo Forward = Find("_forwardNative");
    private static readonly FieldInfo DeviceType = Find("_deviceType");
    private static readonly FieldInfo DeviceIndex = Find("_deviceIndex");
    private static readonly Type Functions = typeof(torch).Assembly.GetType("TorchSharp.PInvoke.NativeMethods", throwOnError: true)!;
    private static readonly MethodInfo Parameters =
        typeof(nn.Module).GetMethod("_named_parameters", BindingFlags.Instance | BindingFlags.NonPublic)!;

    /// <summary>Tell whether a field belongs to the native object.</summary>
    public static bool Owns(FieldInfo field) => field == Handle || field == Boxed || field == Forward;

    /// <summary>Tell why a module has no native object that can be made anew; null where it has.</summary>
    public static string? Fault(nn.Module module)
    {
        if (Native(module).IsInvalid)
        {
            return "which is disposed";
        }

        if (module is jit.ScriptModule)
        {
            return "whose parameters live in TorchScript";
        }

        return IsFromLibtorch(module) && !NativeClone.IsSupported ? "whose parameters live in libtorch" : null;
    }

    /// <summary>Give a copy a native object of its own; that of a module of libtorch is cloned, with its options.</summary>
    public static void Renew(nn.Module original, nn.Module copy, TensorCopier tensors)
    {
        if (!IsFromLibtorch(original))
        {
            nn.Module donor = original is Sequential ? nn.Sequential() : new Donor(original.GetName());
            foreach (var field in new[] { Handle, Boxed, Forward })
            {
                field.SetValue(copy, field.GetValue(donor));
            }

            return;
        }

        var clone = NativeClone.Of(Native(original));
        var handle = Activator.CreateInstance(Handle.FieldType, clone, true, null)!;
        Handle.SetValue(copy, handle);
        if (tensors.Destination is { } device)
        {
            Call<object>("THSNN_Module_to_device", handle, (long)device.type, (long)device.index, false);
        }

        foreach (var (own, other) in Named(original).Zip(Named(copy)))
        {
            tensors.Adopt(own.Parameter, other.Parameter);
        }
    }

    /// <summary>Give a filled copy the mode of its original, and the weights that were put in the place of others.</summary>
    public static void Finish(nn.Module original, nn.Module copy, TensorCopier tensors)
    {
        SetMode(copy, original.training);
        if (tensors.Destination is { } device)
        {
            DeviceType.SetValue(copy, device.type);
            DeviceIndex.SetValue(copy, device.index);
        }

        if (!IsFromLibtorch(original))
        {
            return;
        }

        foreach (var property in original.GetType().GetProperties().Where(property => property.SetMethod is not null))
        {
            if (property.GetValue(original) is Parameter weight)
            {
                using var own = tensors.Copy(weight);
                Call<object>($"THSNN_{original.GetType().Name}_set_{property.Name}", Handle.GetValue(copy)!, own.Handle);
            }
        }
    }

    /// <summary>Put a module in training or evaluation mode, without its children.</summary>
    public static void SetMode(nn.Module module, bool training)
    {
        if (module is jit.ScriptModule)
        {
            module.train(training); // its native object is of another kind
        }
        else
        {
            Call<object>("THSNN_Module_train", Native(module), training);
        }
    }

    /// <summary>Make a parameter of a tensor, which becomes empty; TorchSharp's own way would count it as two.</summary>
    public static Parameter Parameter(Tensor tensor) => (Parameter)Activator.CreateInstance(
        typeof(Parameter), BindingFlags.Instance | BindingFlags.NonPublic, null, [tensor.DecoupleFromNativeHandle()], null)!;

    /// <summary>Call a function of libtorch that TorchSharp keeps to itself.</summary>
    public static T Call<T>(string name, params object[] arguments)
        => (T)Functions.GetMethod(name, BindingFlags.Static | BindingFlags.NonPublic)!.Invoke(null, arguments)!;

    /// <summary>Take the handle of a module's native object.</summary>
    public static SafeHandle Native(nn.Module module) => (SafeHandle)Handle.GetValue(module)!;

    private static bool IsFromLibtorch(nn.Module module) => module is not Sequential && Forward.GetValue(module) is null;

    private static (string Name, Parameter Parameter)[] Named(nn.Module module)
        => ((string, Parameter)[])Parameters.Invoke(module, null)!;

    private static FieldInfo Find(string name)
        => typeof(nn.Module).GetField(name, BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic)
            ?? throw new MissingFieldException(nameof(nn.Module), name);

    private sealed class Donor(string name) : nn.Module(name);
}
