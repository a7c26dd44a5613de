using System.Collections;
using System.Reflection;
using System.Runtime.CompilerServices;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>Copies a module deeply, whatever its class: fields, containers, closures and tied tensors.</summary>
/// <remarks>
/// TorchSharp has no clone, and a copier per class would be wrong for the first field that it forgets. So the object
/// graph is copied field by field, every object once: what was shared is shared in the copy.
/// </remarks>
internal sealed class ModuleCopier
{
    private const BindingFlags Declared =
        BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.DeclaredOnly;

    private readonly Dictionary<object, object> copies = new(ReferenceEqualityComparer.Instance);
    private readonly List<(nn.Module Original, nn.Module Copy)> modules = [];
    private readonly Device device;

    private ModuleCopier(Device device) => this.device = device;

    /// <summary>Copy a module to a device, without gradients.</summary>
    public static T Copy<T>(T module, Device device)
        where T : nn.Module
    {
        using var scope = NewDisposeScope();
        using var mode = no_grad();
        var copier = new ModuleCopier(device);
        var copy = (T)copier.CopyModule(module, module.GetType().Name);
        foreach (var (original, replica) in copier.modules.Where(pair => pair.Original.training != pair.Copy.training))
        {
            replica.train(original.training);
        }

        return copy;
    }

    private object? Copy(object? value, string path)
    {
        if (value is null or string or MemberInfo or Assembly or Device or Scalar || IsPlain(value.GetType()))
        {
            return value;
        }

        if (copies.TryGetValue(value, out var known))
        {
            return known;
        }

        return value switch
        {
            Tensor tensor => CopyTensor(tensor),
            nn.Module module => CopyModule(module, path),
            Delegate function => CopyDelegate(function, path),
            Array array => CopyArray(array, path),
            IDictionary dictionary when Is(value.GetType(), typeof(Dictionary<,>)) => CopyDictionary(dictionary, path),
            IEnumerable set when Is(value.GetType(), typeof(HashSet<>)) => CopySet(set, path),
            Pointer or nint or nuint or Stream => throw Refuse(path, value.GetType()),
            _ when HasFinalizer(value.GetType()) => throw Refuse(path, value.GetType()),
            _ => CopyFields(value, RuntimeHelpers.GetUninitializedObject(value.GetType()), path),
        };
    }

    private Tensor CopyTensor(Tensor tensor)
    {
        var data = tensor.detach().to(device, copy: true);
        var copy = tensor is Parameter
            ? new Parameter(data, tensor.requires_grad)
            : data.requires_grad_(tensor.requires_grad);
        copies[tensor] = copy.DetachFromDisposeScope();
        return copy;
    }

    private nn.Module CopyModule(nn.Module module, string path)
    {
        var copy = (nn.Module)RuntimeHelpers.GetUninitializedObject(module.GetType());
        modules.Add((module, copy));
        NativeModule.Renew(module, copy, path);
        CopyFields(module, copy, path);
        NativeModule.SetDevice(copy, device);
        return copy;
    }

    private Delegate CopyDelegate(Delegate function, string path)
    {
        var parts = function.GetInvocationList().Select(part => part.Target is null
            ? part
            : part.Method.CreateDelegate(part.GetType(), Copy(part.Target, path)));
        var copy = Delegate.Combine([.. parts])!;
        copies[function] = copy;
        return copy;
    }

    private Array CopyArray(Array array, string path)
    {
        var copy = (Array)array.Clone();
        copies[array] = copy;
        if (IsPlain(array.GetType().GetElementType()!))
        {
            return copy;
        }

        var position = new int[array.Rank];
        foreach (var item in array)
        {
            copy.SetValue(Copy(item, $"{path}[{string.Join(", ", position)}]"), position);
            Advance(position, array);
        }

        return copy;
    }

    private object CopyDictionary(IDictionary dictionary, string path)
    {
        var comparer = dictionary.GetType().GetProperty("Comparer")!.GetValue(dictionary);
        var copy = (IDictionary)Activator.CreateInstance(dictionary.GetType(), comparer)!;
        copies[dictionary] = copy;
        foreach (DictionaryEntry entry in dictionary)
        {
            var place = $"{path}[{entry.Key}]";
            copy.Add(Copy(entry.Key, place)!, Copy(entry.Value, place));
        }

        return copy;
    }

    private object CopySet(IEnumerable set, string path)
    {
        var type = set.GetType();
        var copy = Activator.CreateInstance(type, type.GetProperty("Comparer")!.GetValue(set))!;
        copies[set] = copy;
        var add = type.GetMethod("Add")!;
        foreach (var item in set)
        {
            add.Invoke(copy, [Copy(item, path)]);
        }

        return copy;
    }

    private object CopyFields(object original, object copy, string path)
    {
        if (!original.GetType().IsValueType)
        {
            copies[original] = copy;
        }

        for (var type = original.GetType(); type is not null && type != typeof(object); type = type.BaseType)
        {
            foreach (var field in type.GetFields(Declared).Where(field => !NativeModule.Owns(field)))
            {
                field.SetValue(copy, Copy(field.GetValue(original), $"{path}.{Named(field)}"));
            }
        }

        return copy;
    }

    private static bool IsPlain(Type type)
        => (type.IsPrimitive && type != typeof(nint) && type != typeof(nuint)) || type.IsEnum || type == typeof(decimal);

    private static bool Is(Type type, Type definition) => type.IsGenericType && type.GetGenericTypeDefinition() == definition;

    /// <summary>Tell whether a type has to clean up: such an object owns more than its fields.</summary>
    private static bool HasFinalizer(Type type)
        => type.GetMethod("Finalize", BindingFlags.Instance | BindingFlags.NonPublic)!.DeclaringType != typeof(object);

    /// <summary>Name a field as the user wrote it: auto-properties store theirs as <c>&lt;Name&gt;k__BackingField</c>.</summary>
    private static string Named(FieldInfo field)
        => field.Name.StartsWith('<') ? field.Name[1..field.Name.IndexOf('>', StringComparison.Ordinal)] : field.Name;

    private static void Advance(int[] position, Array array)
    {
        for (var axis = array.Rank - 1; axis >= 0 && ++position[axis] == array.GetLength(axis) && axis > 0; axis--)
        {
            position[axis] = 0;
        }
    }

    private static NotSupportedException Refuse(string path, Type type)
        => new($"replicate: expected fields that can be copied, got {path} of type {type.Name}, which holds a native resource");
}
