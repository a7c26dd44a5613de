using System.ComponentModel;
using static TorchSharp.torch;

namespace BridgeSharp.Trace;

/// <summary>What the code of a port calls around each <c>forward</c>, after <see cref="PortAssembly"/> rewrote it.</summary>
/// <remarks>Spec: R33.1.</remarks>
[EditorBrowsable(EditorBrowsableState.Never)]
public static class Observed
{
    /// <summary>Show that a layer is about to run.</summary>
    /// <param name="layer">Whose <c>forward</c> it is; what is no layer, or not being recorded, passes.</param>
    /// <param name="caller">The object whose method calls it, or null.</param>
    /// <param name="inputs">Its arguments.</param>
    /// <param name="site">Where it is called, or null where no symbols say it.</param>
    public static void enter(object? layer, object? caller, object?[] inputs, string? site)
    {
        if (layer is nn.Module module && LayerHooks.Observer(module) is { } calls)
        {
            calls.enter(module, inputs, site, own: ReferenceEquals(layer, caller));
        }
    }

    /// <summary>Show that a layer has run.</summary>
    /// <param name="layer">Whose <c>forward</c> it is; what is no layer, or not being recorded, passes.</param>
    /// <param name="caller">The object whose method calls it, or null.</param>
    /// <param name="outputs">What it returned.</param>
    /// <returns>The same values, whose gradients are observed where that was asked for.</returns>
    public static object? leave(object? layer, object? caller, object? outputs)
        => layer is nn.Module module && LayerHooks.Observer(module) is { } calls
            ? calls.leave(module, outputs, own: ReferenceEquals(layer, caller))
            : outputs;

    /// <summary>Show the calls of a function that is the <c>forward</c> of a layer.</summary>
    /// <typeparam name="TFunction">Its type.</typeparam>
    /// <param name="function">The function.</param>
    /// <param name="site">Where it is made, or null where no symbols say it.</param>
    /// <returns>A function that does the same, or the function itself where its layer is none, or takes more than three arguments.</returns>
    public static TFunction wrap<TFunction>(TFunction function, string? site)
        where TFunction : Delegate
    {
        var method = typeof(TFunction).GetMethod("Invoke")!;
        Type[] types = [.. method.GetParameters().Select(parameter => parameter.ParameterType), method.ReturnType];
        if (function.Target is not nn.Module || types.Length > 4 || Array.Exists(types, type => type.IsByRef || type.IsByRefLike))
        {
            return function;
        }

        var plain = (types.Length == 2 ? typeof(Func<,>) : types.Length == 3 ? typeof(Func<,,>) : typeof(Func<,,,>)).MakeGenericType(types);
        var forward = (types.Length == 2 ? typeof(Forward<,>) : types.Length == 3 ? typeof(Forward<,,>) : typeof(Forward<,,,>)).MakeGenericType(types);
        var own = Activator.CreateInstance(forward, Delegate.CreateDelegate(plain, function.Target, function.Method), site)!;
        return (TFunction)Delegate.CreateDelegate(typeof(TFunction), own, forward.GetMethod("Run")!);
    }

#pragma warning disable CA1812 // Made by reflection.
    private sealed class Forward<T, TResult>(Func<T, TResult> function, string? site)
    {
        public TResult Run(T input)
        {
            enter(function.Target, null, [input], site);
            return (TResult)leave(function.Target, null, function(input))!;
        }
    }

    private sealed class Forward<T1, T2, TResult>(Func<T1, T2, TResult> function, string? site)
    {
        public TResult Run(T1 input1, T2 input2)
        {
            enter(function.Target, null, [input1, input2], site);
            return (TResult)leave(function.Target, null, function(input1, input2))!;
        }
    }

    private sealed class Forward<T1, T2, T3, TResult>(Func<T1, T2, T3, TResult> function, string? site)
    {
        public TResult Run(T1 input1, T2 input2, T3 input3)
        {
            enter(function.Target, null, [input1, input2, input3], site);
            return (TResult)leave(function.Target, null, function(input1, input2, input3))!;
        }
    }
#pragma warning restore CA1812
}
