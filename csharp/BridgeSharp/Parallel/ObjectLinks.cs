using System.Collections;
using System.Globalization;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Text;
using System.Text.RegularExpressions;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>One way from an object to another.</summary>
/// <param name="Label">What to append to the path: <c>.name</c>, <c>[0]</c>, or nothing.</param>
/// <param name="Target">The other object.</param>
/// <param name="Captured">Whether a function, or a weak reference, leads there: the object does not own the other.</param>
internal readonly record struct ObjectLink(string Label, object? Target, bool Captured = false);

/// <summary>Reads the objects that an object leads to.</summary>
internal static class ObjectLinks
{
    /// <summary>List the objects that an object leads to, through values in between.</summary>
    public static IEnumerable<ObjectLink> Of(object value) => value switch
    {
        Tensor or Generator or nint or nuint or Pointer => [],
        _ when IsHookRemover(value.GetType()) => [],
        Delegate function => function.GetInvocationList().SelectMany(part => Through("", part.Target, captured: true)),
        Array array => IsPlain(array.GetType().GetElementType()!) ? [] : Items(array),
        nn.Module module => Children(module).Concat(Fields(value)),
        WeakReference weak => [new ObjectLink("", weak.Target, Captured: true)],
        _ when IsWeak(value.GetType()) => [new ObjectLink("", WeakTarget(value), Captured: true)],
        IDictionary items when IsCollection(value.GetType())
            => Entries(items).SelectMany(entry => Through($"[{Written(entry.Key)}]", entry.Value)).Concat(Fields(value)),
        IEnumerable items when IsCollection(value.GetType()) && !Array.TrueForAll(value.GetType().GetGenericArguments(), IsPlain)
            => Items(items).Concat(Fields(value)),
        _ => Fields(value),
    };

    /// <summary>Tell whether values of a type hold nothing.</summary>
    public static bool IsPlain(Type type)
        => (type.IsPrimitive && type != typeof(nint) && type != typeof(nuint)) || type.IsEnum || type == typeof(decimal);

    /// <summary>Tell whether an object never changes, so that it needs no copy; a disposed tensor is one.</summary>
    public static bool IsConstant(object value) => IsPlain(value.GetType()) || value is nint and 0
        || value is string or MemberInfo or Assembly or Module or Device or Scalar or CultureInfo or Encoding or Regex
        || value is Tensor { IsInvalid: true } or Generator { Handle: 0 }
        || (value is IComparer or IEqualityComparer && IsSystem(value.GetType()));

    /// <summary>Tell whether an object has no use of its own: a delegate, what the compiler keeps captured variables in, a weak reference.</summary>
    public static bool IsFunction(object value) => value is Delegate or WeakReference
        || IsWeak(value.GetType())
        || value.GetType().IsDefined(typeof(CompilerGeneratedAttribute), inherit: false);

    /// <summary>Tell whether a type is <see cref="WeakReference{T}"/>.</summary>
    public static bool IsWeak(Type type) => type.IsGenericType && type.GetGenericTypeDefinition() == typeof(WeakReference<>);

    /// <summary>Take what a weak reference leads to, or null.</summary>
    public static object? WeakTarget(object weak)
    {
        object?[] target = [null];
        weak.GetType().GetMethod("TryGetTarget")!.Invoke(weak, target);
        return target[0];
    }

    /// <summary>List the fields of an object that a copy has to be given.</summary>
    public static IEnumerable<FieldInfo> FieldsOf(Type type)
        => Classes(type).SelectMany(own => own.GetFields(FieldSnapshot.Own)).Where(field => !NativeModule.Owns(field));

    /// <summary>List a class and those that it derives from.</summary>
    public static IEnumerable<Type> Classes(Type type)
    {
        for (var own = type; own is not null && own != typeof(object); own = own.BaseType)
        {
            yield return own;
        }
    }

    /// <summary>Follow a value to the objects in it; a pointer is what nothing can be said about.</summary>
    public static IEnumerable<ObjectLink> Through(object? value) => Through("", value);

    /// <summary>Tell whether a type is one of .NET's collections.</summary>
    public static bool IsCollection(Type type) => type.Namespace?.StartsWith("System.Collections", StringComparison.Ordinal) ?? false;

    /// <summary>List the entries of a dictionary.</summary>
    public static IEnumerable<DictionaryEntry> Entries(IDictionary dictionary)
    {
        for (var entries = dictionary.GetEnumerator(); entries.MoveNext();)
        {
            yield return entries.Entry;
        }
    }

    private static IEnumerable<ObjectLink> Fields(object value) => FieldsOf(value.GetType())
        .Where(field => !IsPlain(field.FieldType))
        .SelectMany(field => Through(Named(field.Name), field.GetValue(value)));

    private static IEnumerable<ObjectLink> Children(nn.Module module)
        => module.named_children().Select(child => new ObjectLink(Named(child.name), child.module));

    /// <summary>List what a collection holds under the names that its user knows; its fields have others.</summary>
    private static IEnumerable<ObjectLink> Items(IEnumerable items)
    {
        var index = 0;
        foreach (var item in items)
        {
            foreach (var link in Through($"[{index}]", item))
            {
                yield return link;
            }

            index++;
        }
    }

    private static IEnumerable<ObjectLink> Through(string label, object? target, bool captured = false)
        => target is ValueType and not (nint or nuint) && !IsPlain(target.GetType())
            ? Fields(target).Select(link => link with { Label = label + link.Label, Captured = captured })
            : [new ObjectLink(label, target, captured)];

    /// <summary>Name a field as the user wrote it: properties store theirs as <c>&lt;Name&gt;k__BackingField</c>, closures as <c>&lt;&gt;4__this</c>.</summary>
    private static string Named(string field)
    {
        var name = field.StartsWith('<') ? field[1..field.IndexOf('>', StringComparison.Ordinal)] : field;
        return name.Length == 0 ? "" : $".{name}";
    }

    private static object Written(object key) => key is string || IsPlain(key.GetType()) ? key : key.GetType().Name;

    /// <summary>Tell whether a type is TorchSharp's handle of a hook: whoever can remove a hook is no part of the module.</summary>
    private static bool IsHookRemover(Type type) => type.Name == "HookRemover" && type.Assembly == typeof(torch).Assembly;

    private static bool IsSystem(Type type) => type.Namespace?.StartsWith("System", StringComparison.Ordinal) ?? false;
}
