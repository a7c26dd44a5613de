using System.Runtime.CompilerServices;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>Copies a module deeply, whatever its class: fields, containers, closures and tied tensors.</summary>
/// <remarks>
/// TorchSharp has no clone, and a copier per class would be wrong for the first field that it forgets. So the object
/// graph is copied field by field, every object once: what was shared inside is shared in the copy.
/// </remarks>
internal sealed class ModuleCopier
{
    private readonly Dictionary<object, object> copies = new(ReferenceEqualityComparer.Instance);
    private readonly HashSet<object> functions = new(ReferenceEqualityComparer.Instance);
    private readonly TensorCopier tensors;

    private ModuleCopier(IEnumerable<object> originals, Device from, Device to)
        => tensors = new TensorCopier(originals.OfType<Tensor>(), from, to);

    /// <summary>Copy a module from one device to another, without gradients.</summary>
    /// <exception cref="ArgumentException">Something that cannot be copied; the message names it.</exception>
    public static T Copy<T>(T module, Device from, Device to)
        where T : nn.Module
    {
        using var scope = NewDisposeScope();
        using var mode = no_grad();
        var copied = new ObjectGraph(module).Copied;
        Uncopyable.Check(copied);
        var originals = copied.Select(item => item.Value).ToList();
        var copier = new ModuleCopier(originals, from, to);
        copier.Allocate(originals);
        copier.Fill();
        copier.Finish();
        return (T)copier.copies[module];
    }

    /// <summary>Make every object of the copy, still empty; libtorch's modules bring their parameters along.</summary>
    private void Allocate(List<object> originals)
    {
        foreach (var module in originals.OfType<nn.Module>())
        {
            var copy = (nn.Module)RuntimeHelpers.GetUninitializedObject(module.GetType());
            copies.Add(module, copy);
            NativeModule.Renew(module, copy, tensors);
        }

        foreach (var original in originals)
        {
            if (original is Delegate or WeakReference || ObjectLinks.IsWeak(original.GetType()))
            {
                functions.Add(original);
            }
            else if (original is not nn.Module)
            {
                copies.Add(original, Empty(original));
            }
        }
    }

    private object Empty(object original) => original switch
    {
        Tensor tensor => tensors.Copy(tensor),
        Generator generator => tensors.Copy(generator),
        Array array => array.Clone(),
        _ => RuntimeHelpers.GetUninitializedObject(original.GetType()),
    };

    private void Fill()
    {
        foreach (var (original, copy) in copies.ToList())
        {
            if (copy is Array array)
            {
                FillItems(array);
            }
            else if (copy is not (Tensor or Generator))
            {
                FillFields(original, copy);
            }
        }
    }

    private void FillItems(Array copy)
    {
        if (ObjectLinks.IsPlain(copy.GetType().GetElementType()!))
        {
            return;
        }

        var position = new int[copy.Rank];
        foreach (var item in copy.Cast<object?>().ToList())
        {
            copy.SetValue(Renewed(item), position);
            Advance(position, copy);
        }
    }

    private object FillFields(object original, object copy)
    {
        foreach (var field in ObjectLinks.FieldsOf(original.GetType()))
        {
            field.SetValue(copy, Renewed(field.GetValue(original)));
        }

        return copy;
    }

    /// <summary>Find what stands in the copy for an object: its copy, or the object itself where it is shared.</summary>
    private object? Renewed(object? value)
    {
        if (value is null or nint or nuint || ObjectLinks.IsPlain(value.GetType()))
        {
            return value;
        }

        if (value is ValueType)
        {
            return FillFields(value, RuntimeHelpers.GetUninitializedObject(value.GetType()));
        }

        if (!copies.TryGetValue(value, out var copy) && functions.Contains(value))
        {
            copies[value] = copy = Rebound(value);
        }

        return copy ?? value;
    }

    /// <summary>Let a function, or a weak reference, lead to the copy.</summary>
    private object Rebound(object original) => original switch
    {
        Delegate function => Delegate.Combine([.. function.GetInvocationList().Select(part =>
            part.Target is null ? part : part.Method.CreateDelegate(part.GetType(), Renewed(part.Target)))])!,
        WeakReference weak => new WeakReference(Renewed(weak.Target), weak.TrackResurrection),
        _ => Activator.CreateInstance(original.GetType(), Renewed(ObjectLinks.WeakTarget(original)))!,
    };

    private void Finish()
    {
        foreach (var (original, copy) in copies)
        {
            if (original is nn.Module module)
            {
                NativeModule.Finish(module, (nn.Module)copy, tensors);
            }
            else
            {
                HashedKeys.Restore(copy);
            }
        }
    }

    private static void Advance(int[] position, Array array)
    {
        for (var axis = array.Rank - 1; axis >= 0 && ++position[axis] == array.GetLength(axis) && axis > 0; axis--)
        {
            position[axis] = 0;
        }
    }
}
