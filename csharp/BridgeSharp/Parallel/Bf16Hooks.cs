using System.Reflection;
using System.Runtime.CompilerServices;
using TorchSharp.Modules;
using static TorchSharp.torch;
using Layer = TorchSharp.torch.nn.Module<TorchSharp.torch.Tensor, TorchSharp.torch.Tensor>;

namespace BridgeSharp.Parallel;

/// <summary>Puts the product of a layer in bfloat16 by hooks, since TorchSharp's layers are sealed.</summary>
/// <remarks>
/// The layer itself runs on no samples, which costs next to nothing, and its result is replaced by the product. So the
/// first hook has to be the last one before the layer, and the second the first one after it.
/// </remarks>
internal static class Bf16Hooks
{
    private static readonly FieldInfo HooksBefore = Find("pre_hooks");
    private static readonly FieldInfo HooksAfter = Find("post_hooks");
    private static readonly Func<Layer, Tensor, Tensor> Before = TakeInput;
    private static readonly Func<Layer, Tensor, Tensor, Tensor> After = Multiply;
    private static readonly ConditionalWeakTable<Tensor, Tensor> Inputs = [];

    /// <summary>Give a layer the hooks, once.</summary>
    public static void Register(Layer layer)
    {
        if (!IsOn(layer))
        {
            layer.register_forward_pre_hook(Before);
            layer.register_forward_hook(After);
        }
    }

    /// <summary>Refuse a layer that has a forward hook already, which would see the result on no samples.</summary>
    /// <exception cref="ArgumentException">It has.</exception>
    public static void Check(Layer layer, string name)
    {
        var others = ((Dictionary<string, Func<Layer, Tensor, Tensor, Tensor>>)HooksAfter.GetValue(layer)!).Count;
        if (others > 0 && !IsOn(layer))
        {
            throw new ArgumentException($"mixed_precision: expected forward hooks of {name} to be registered afterwards, got {others} registered before");
        }
    }

    /// <summary>Let the hook of a layer stay the last one before it, where it has one and another was registered.</summary>
    public static void KeepLast(Layer layer)
    {
        if (IsOn(layer))
        {
            var hooks = HooksOf(layer);
            var own = hooks.Single(hook => hook.Value == Before);
            hooks.Remove(own.Key);
            KeyValuePair<string, Func<Layer, Tensor, Tensor>>[] others = [.. hooks];
            hooks.Clear();
            foreach (var (key, hook) in others.Append(own))
            {
                hooks.Add(key, hook);
            }
        }
    }

    private static bool IsOn(Layer layer) => HooksOf(layer).ContainsValue(Before);

    private static Tensor TakeInput(Layer layer, Tensor input)
    {
        if (HooksOf(layer).Values.Last() != Before)
        {
            throw new InvalidOperationException(
                $"mixed_precision: expected forward pre-hooks of {layer.GetName()} to be registered before, got 1 registered afterwards");
        }

        var batched = layer is Convolution { kernel_size.Length: var axes } ? axes + 2 : 2;
        var none = zeros([0, .. input.shape.Skip(input.dim() < batched ? 0 : 1)], float32, input.device);
        Inputs.Add(none, input);
        return none;
    }

    private static Tensor Multiply(Layer layer, Tensor none, Tensor output)
    {
        output.Dispose();
        Inputs.Remove(none, out var input);
        var result = Bf16Product.Of(layer, input!);

        // The hooks that follow are given this tensor as the layer's input.
        using var data = input!.detach();
        none.set_(data);
        return result;
    }

    private static Dictionary<string, Func<Layer, Tensor, Tensor>> HooksOf(Layer layer)
        => (Dictionary<string, Func<Layer, Tensor, Tensor>>)HooksBefore.GetValue(layer)!;

    private static FieldInfo Find(string name)
        => typeof(nn.HookableModule<Func<Layer, Tensor, Tensor>, Func<Layer, Tensor, Tensor, Tensor>>)
                .GetField(name, BindingFlags.Instance | BindingFlags.NonPublic)
            ?? throw new MissingFieldException(nameof(Layer), name);
}
