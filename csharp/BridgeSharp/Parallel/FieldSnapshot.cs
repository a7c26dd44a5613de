using System.Collections;
using System.Reflection;
using System.Runtime.CompilerServices;
using TorchSharp;
using TorchSharp.Modules;
using TorchSharp.Utils;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>The attributes of one object, and what is in their containers; tensors are copied.</summary>
/// <remarks>
/// Everything is given back in its place: tensors, lists and dictionaries stay the same objects. It lives inside a
/// dispose scope.
/// </remarks>
internal sealed class FieldSnapshot
{
    /// <summary>All fields of an instance that one class declares.</summary>
    public const BindingFlags Own =
        BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.DeclaredOnly;

    private readonly HashSet<object> seen = new(ReferenceEqualityComparer.Instance);
    private readonly Func<object?> giveBack;

    /// <summary>Keep the fields of an object.</summary>
    /// <param name="target">An optimizer or a scheduler.</param>
    public FieldSnapshot(object target) => giveBack = Keep(target);

    /// <summary>Give the fields back.</summary>
    public void Restore()
    {
        using var mode = no_grad();
        giveBack();
    }

    /// <summary>Give an optimizer the options and the state of another one of its class.</summary>
    public static void Copy(optim.Optimizer source, optim.Optimizer target)
    {
        if ((source, target) is (Optim.Optimizer exact, Optim.Optimizer own))
        {
            own.Take(exact);
            return;
        }

        using var mode = no_grad();
        foreach (var (given, taken) in Parts(source).Zip(Parts(target)))
        {
            var device = Fields(taken).Select(field => field.GetValue(taken)).OfType<Parameter>().FirstOrDefault()?.device;
            foreach (var field in Fields(given))
            {
                field.SetValue(taken, Copied(field.GetValue(given), field.GetValue(taken), device));
            }
        }
    }

    /// <summary>List the options of an optimizer's groups and the states of its parameters.</summary>
    private static IEnumerable<object> Parts(optim.Optimizer optimizer)
    {
        var state = Fields(optimizer).First(field => field.Name == "_state");
        var held = state.GetValue(optimizer) as IEnumerable<(nint, OptimizerState)> ?? [];
        return [.. optimizer.ParamGroups.OfType<ParamGroup>().Select(group => group.Options), .. held.Select(entry => entry.Item2)];
    }

    /// <summary>Copy a value of another object's field over that of one's own; a parameter stays one's own.</summary>
    private static object? Copied(object? given, object? own, Device? device)
    {
        if (given is Parameter || given is not Tensor tensor)
        {
            return given is Parameter ? own : given;
        }

        if (own is Tensor present && !present.IsInvalid && present.dtype == tensor.dtype && present.shape.SequenceEqual(tensor.shape))
        {
            return present.copy_(tensor);
        }

        return tensor.detach().to(device ?? tensor.device, copy: true).DetachFromDisposeScope();
    }

    /// <summary>Return a function that gives a value back as it is now.</summary>
    private Func<object?> Keep(object? value) => value switch
    {
        null or Parameter or string => () => value,
        _ when !value.GetType().IsValueType && !seen.Add(value) => () => value,
        Tensor tensor => KeepTensor(tensor),
        IDictionary dictionary => KeepDictionary(dictionary),
        IList list => KeepList(list),
        ITuple tuple => KeepTuple(tuple),
        _ when HasFields(value) => KeepFields(value),
        _ => () => value,
    };

    /// <summary>Keep a tensor: its values, or a copy where it was disposed meanwhile.</summary>
    private static Func<object?> KeepTensor(Tensor tensor)
    {
        if (tensor.IsInvalid)
        {
            return () => tensor;
        }

        var copy = tensor.detach().clone();
        return () => tensor.IsInvalid ? copy.DetachFromDisposeScope() : tensor.copy_(copy);
    }

    private Func<object?> KeepDictionary(IDictionary dictionary)
    {
        var entries = dictionary.Keys.Cast<object>().Select(key => (key, Keep(dictionary[key]))).ToList();
        return () =>
        {
            var kept = entries.ConvertAll(entry => (entry.key, entry.Item2()));
            dictionary.Clear();
            kept.ForEach(entry => dictionary.Add(entry.key, entry.Item2));
            return dictionary;
        };
    }

    private Func<object?> KeepList(IList list)
    {
        var items = list.Cast<object?>().Select(Keep).ToList();
        return () =>
        {
            while (!(list.IsFixedSize || list.IsReadOnly) && list.Count > items.Count)
            {
                list.RemoveAt(list.Count - 1);
            }

            for (var index = 0; index < items.Count; index++)
            {
                if (list.IsReadOnly)
                {
                    items[index]();
                }
                else if (index < list.Count)
                {
                    list[index] = items[index]();
                }
                else
                {
                    list.Add(items[index]());
                }
            }

            return list;
        };
    }

    private Func<object?> KeepTuple(ITuple tuple)
    {
        var parts = Enumerable.Range(0, tuple.Length).Select(index => Keep(tuple[index])).ToList();
        return () =>
        {
            parts.ForEach(part => part());
            return tuple;
        };
    }

    private Func<object?> KeepFields(object target)
    {
        var fields = Fields(target).Select(field => (field, Keep(field.GetValue(target)))).ToList();
        return () =>
        {
            fields.ForEach(pair => pair.field.SetValue(target, pair.Item2()));
            return target;
        };
    }

    /// <summary>Tell whether an object belongs to an optimizer or a scheduler, so that its fields are kept.</summary>
    private static bool HasFields(object value)
        => value is optim.Optimizer or OptimizerState or OptimizerOptions or ParamGroup or optim.lr_scheduler.LRScheduler
            || (value.GetType() is { IsGenericType: true } type && type.GetGenericTypeDefinition() == typeof(OrderedDict<,>));

    private static IEnumerable<FieldInfo> Fields(object target)
    {
        for (var type = target.GetType(); type is not null && type != typeof(object); type = type.BaseType)
        {
            foreach (var field in type.GetFields(Own))
            {
                yield return field;
            }
        }
    }
}
