using System.Runtime.CompilerServices;
using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Trace;

/// <summary>What a model holds in its fields and never registered: layers, and tensors that take gradients.</summary>
/// <remarks>Its names are those that it would have if it were registered: <c>layers.2.fc</c>. Spec: R33.3.</remarks>
internal static class Unregistered
{
    /// <summary>What is wrong with them.</summary>
    public const string Warning = "not registered: the optimizer and state_dict do not see it";

    /// <summary>List the layers.</summary>
    public static IEnumerable<(string Name, nn.Module Layer)> Layers(nn.Module model)
        => Walk(model).Where(found => found.Value is nn.Module).Select(found => (found.Name, (nn.Module)found.Value));

    /// <summary>List the parameters: those of the layers, and tensors in fields that take gradients.</summary>
    public static IEnumerable<(string Name, Tensor Tensor)> Parameters(nn.Module model)
        => Walk(model).SelectMany(found => found.Value is nn.Module layer
            ? layer.named_parameters(false).Select(named => ($"{found.Name}.{named.name}", (Tensor)named.parameter))
            : [(found.Name, (Tensor)found.Value)]);

    /// <summary>List the buffers of the layers.</summary>
    public static IEnumerable<(string Name, Tensor Tensor)> Buffers(nn.Module model)
        => Layers(model).SelectMany(found => found.Layer.named_buffers(false).Select(named => ($"{found.Name}.{named.name}", named.buffer)));

    /// <summary>Walk the fields of a model, the nearest first.</summary>
    private static IEnumerable<(string Name, object Value)> Walk(nn.Module model)
    {
        var registered = new Dictionary<object, string>(ReferenceEqualityComparer.Instance) { [model] = "" };
        foreach (var (name, layer) in model.named_modules())
        {
            registered.TryAdd(layer, name);
        }

        var tensors = registered.Keys.Cast<nn.Module>().SelectMany(Own).ToHashSet();
        var seen = new HashSet<object>(ReferenceEqualityComparer.Instance) { model };
        var open = new Queue<(string Name, object Value)>([("", model)]);
        while (open.TryDequeue(out var holder))
        {
            foreach (var link in Links(holder.Value).Where(link => link.Target is not null && !link.Captured && seen.Add(link.Target)))
            {
                var target = link.Target!;
                var found = (registered.GetValueOrDefault(target) ?? Name(holder.Name, link.Label), target);
                if (target is nn.Module layer ? !registered.ContainsKey(target) : target is Tensor tensor && IsParameter(tensor) && tensors.Add(TensorCopier.Identity(tensor)))
                {
                    tensors.UnionWith(target is nn.Module own ? Own(own) : []);
                    yield return found;
                }

                open.Enqueue(found);
            }
        }
    }

    private static bool IsParameter(Tensor tensor) => !tensor.IsInvalid && tensor.requires_grad && tensor.is_leaf;

    private static IEnumerable<nint> Own(nn.Module layer)
        => layer.named_parameters(false).Select(named => (Tensor)named.parameter).Concat(layer.named_buffers(false).Select(named => named.buffer)).Select(TensorCopier.Identity);

    private static string Name(string holder, string label)
        => $"{holder}{label.Replace('[', '.').Replace("]", "", StringComparison.Ordinal)}".TrimStart('.');

    /// <summary>List where an object leads to: TorchSharp's layers to their children, other classes of its and of .NET's nowhere.</summary>
    private static IEnumerable<ObjectLink> Links(object value) => value switch
    {
        nn.Module layer when layer.GetType().Assembly == typeof(torch).Assembly
            => layer.named_children().Select(child => new ObjectLink($".{child.name}", child.module)),
        _ when ObjectLinks.IsConstant(value) || ObjectLinks.IsFunction(value) => [],
        nn.Module or Array or ITuple => ObjectLinks.Of(value),
        _ when ObjectLinks.IsCollection(value.GetType()) => ObjectLinks.Of(value).Where(link => link.Label.StartsWith('[')),
        _ when value.GetType().Assembly == typeof(torch).Assembly || value.GetType().Assembly == typeof(object).Assembly => [],
        _ => ObjectLinks.Of(value),
    };
}
