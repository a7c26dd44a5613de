using System.Reflection;
using System.Runtime.CompilerServices;
using BridgeSharp.Parallel;
using static TorchSharp.torch;

namespace BridgeSharp.Trace;

/// <summary>Shows the calls of layers to who observes them: TorchSharp's hooks have types of their own for each number of arguments.</summary>
/// <remarks>
/// A hook looks up who observes its layer, and holds nothing: a copy of the layer keeps its hooks, and is not observed.
/// TorchSharp runs hooks in <c>call</c> only, not in <c>forward</c>.
/// </remarks>
internal static class LayerHooks
{
    private static readonly ConditionalWeakTable<nn.Module, LayerCalls> Observers = [];

    private static readonly MethodInfo[] Hooks = [.. typeof(LayerHooks).GetMethods(BindingFlags.Static | BindingFlags.NonPublic)
        .Where(method => method.Name == nameof(Hook))];

    /// <summary>Find who observes a layer, or null.</summary>
    public static LayerCalls? Observer(nn.Module layer) => Observers.TryGetValue(layer, out var calls) ? calls : null;

    /// <summary>Hook a layer, where it has a type that can be hooked; calls of its <c>forward</c> are seen in any case.</summary>
    /// <param name="layer">The layer.</param>
    /// <param name="calls">Who observes it.</param>
    /// <returns>What takes the hooks away.</returns>
    public static Action Attach(nn.Module layer, LayerCalls calls)
    {
        var type = layer.GetType();
        while (type is not null && !(type.IsGenericType && type.BaseType is { IsGenericType: true } hookable
            && hookable.GetGenericTypeDefinition() == typeof(nn.HookableModule<,>)))
        {
            type = type.BaseType;
        }

        var arguments = type?.GetGenericArguments() ?? [];
        Observers.AddOrUpdate(layer, calls);
        var hook = Hooks.FirstOrDefault(method => method.GetGenericArguments().Length == arguments.Length);
        var remove = (Action?)hook?.MakeGenericMethod(arguments).Invoke(null, [layer]);
        return () =>
        {
            remove?.Invoke();
            Observers.Remove(layer);
        };
    }

    private static void Enter(nn.Module layer, params object?[] inputs) => Observer(layer)?.enter(layer, inputs);

    private static T Leave<T>(nn.Module layer, T outputs) => Observer(layer) is { } calls ? (T)calls.leave(layer, outputs)! : outputs;

    private static Action Hook<T, TResult>(nn.Module<T, TResult> layer)
    {
        var before = layer.register_forward_pre_hook((own, input) =>
        {
            Enter(own, input);
            return input;
        });
        var after = layer.register_forward_hook((own, _, outputs) => Leave(own, outputs));
        if (layer is nn.Module<Tensor, Tensor> plain)
        {
            Bf16Hooks.KeepLast(plain);
        }

        return () => Remove(before.remove, after.remove);
    }

    private static Action Hook<T1, T2, TResult>(nn.Module<T1, T2, TResult> layer)
    {
        var before = layer.register_forward_pre_hook((own, input1, input2) => None<(T1, T2)>(own, input1, input2));
        var after = layer.register_forward_hook((own, _, _, outputs) => Leave(own, outputs));
        return () => Remove(before.remove, after.remove);
    }

    private static Action Hook<T1, T2, T3, TResult>(nn.Module<T1, T2, T3, TResult> layer)
    {
        var before = layer.register_forward_pre_hook((own, input1, input2, input3) => None<(T1, T2, T3)>(own, input1, input2, input3));
        var after = layer.register_forward_hook((own, _, _, _, outputs) => Leave(own, outputs));
        return () => Remove(before.remove, after.remove);
    }

    private static Action Hook<T1, T2, T3, T4, TResult>(nn.Module<T1, T2, T3, T4, TResult> layer)
    {
        var before = layer.register_forward_pre_hook(
            (own, input1, input2, input3, input4) => None<(T1, T2, T3, T4)>(own, input1, input2, input3, input4));
        var after = layer.register_forward_hook((own, _, _, _, _, outputs) => Leave(own, outputs));
        return () => Remove(before.remove, after.remove);
    }

    private static Action Hook<T1, T2, T3, T4, T5, TResult>(nn.Module<T1, T2, T3, T4, T5, TResult> layer)
    {
        var before = layer.register_forward_pre_hook(
            (own, input1, input2, input3, input4, input5) => None<(T1, T2, T3, T4, T5)>(own, input1, input2, input3, input4, input5));
        var after = layer.register_forward_hook((own, _, _, _, _, _, outputs) => Leave(own, outputs));
        return () => Remove(before.remove, after.remove);
    }

    private static Action Hook<T1, T2, T3, T4, T5, T6, TResult>(nn.Module<T1, T2, T3, T4, T5, T6, TResult> layer)
    {
        var before = layer.register_forward_pre_hook((own, input1, input2, input3, input4, input5, input6)
            => None<(T1, T2, T3, T4, T5, T6)>(own, input1, input2, input3, input4, input5, input6));
        var after = layer.register_forward_hook((own, _, _, _, _, _, _, outputs) => Leave(own, outputs));
        return () => Remove(before.remove, after.remove);
    }

    private static TInputs? None<TInputs>(nn.Module layer, params object?[] inputs)
        where TInputs : struct
    {
        Enter(layer, inputs);
        return null;
    }

    private static void Remove(params Action[] removals)
    {
        foreach (var remove in removals)
        {
            remove();
        }
    }
}
