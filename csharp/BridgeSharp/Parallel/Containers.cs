using System.Collections.Concurrent;
using System.Collections.Frozen;
using System.Collections.Immutable;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Text;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>One part of a container.</summary>
/// <param name="Path">Where it is in the tree.</param>
/// <param name="Value">What it is.</param>
/// <param name="Key">Its key, index or name in the container.</param>
/// <param name="Place">The type of what may take its place.</param>
internal readonly record struct Part(string Path, object? Value, object Key, Type Place);

/// <summary>Takes containers of one type apart, and makes them anew with other parts.</summary>
internal abstract class Container
{
    private static readonly ConcurrentDictionary<Type, Container?> Known = new();

    /// <summary>Find the container that a value is, or null where it is a leaf.</summary>
    public static Container? Of(object? value)
        => value is null or string or Tensor or nn.Module ? null : Known.GetOrAdd(value.GetType(), Find);

    /// <summary>List the fields of a type, its bases' first.</summary>
    public static IReadOnlyList<FieldInfo> Fields(Type type)
    {
        const BindingFlags Own = BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.DeclaredOnly;
        return type.BaseType is null ? [] : [.. Fields(type.BaseType), .. type.GetFields(Own)];
    }

    /// <summary>Whether it is a list of samples.</summary>
    public virtual bool IsList => false;

    /// <summary>Whether it is a dictionary.</summary>
    public virtual bool IsDictionary => false;

    /// <summary>List the parts of a container with their paths.</summary>
    public abstract IEnumerable<Part> Parts(object value, string path);

    /// <summary>Make a container of the same type with other parts.</summary>
    public abstract object Rebuild(object value, IReadOnlyList<object?> parts);

    /// <summary>Make a collection of its items.</summary>
    protected static object Made(Type type, object items)
    {
        try
        {
            return Activator.CreateInstance(type, [items])!;
        }
        catch (MissingMethodException)
        {
            throw new ArgumentException($"nested arguments: expected a type with a constructor that takes its items, got {Tree.Name(type)}");
        }
    }

    private static Container? Find(Type type)
    {
        if (typeof(ITuple).IsAssignableFrom(type) && type.Namespace == "System")
        {
            return new TupleContainer(type);
        }

        return Generic(typeof(DictionaryContainer<,>), type, typeof(IDictionary<,>))
            ?? Generic(typeof(DictionaryContainer<,>), type, typeof(IReadOnlyDictionary<,>))
            ?? Generic(typeof(ListContainer<>), type, typeof(IReadOnlyList<>))
            ?? Generic(typeof(ListContainer<>), type, typeof(IList<>))
            ?? (RecordContainer.Fits(type) ? new RecordContainer(type) : null);
    }

    private static Container? Generic(Type container, Type type, Type contract)
    {
        var found = type.GetInterfaces().FirstOrDefault(own => own.IsGenericType && own.GetGenericTypeDefinition() == contract);
        return found is null ? null : (Container)Activator.CreateInstance(container.MakeGenericType(found.GetGenericArguments()))!;
    }
}

/// <summary>Tuples of any length: those of more than seven parts nest the rest in their eighth.</summary>
internal sealed class TupleContainer(Type type) : Container
{
    private readonly Type[] places = Places(type);

    /// <inheritdoc/>
    public override IEnumerable<Part> Parts(object value, string path)
        => places.Select((place, i) => new Part($"{path}[{i}]", ((ITuple)value)[i], i, place));

    /// <inheritdoc/>
    public override object Rebuild(object value, IReadOnlyList<object?> parts) => Nested(type, parts);

    private static object Nested(Type type, IReadOnlyList<object?> parts)
        => Activator.CreateInstance(type, parts.Count < 8 ? [.. parts] : [.. parts.Take(7), Nested(type.GetGenericArguments()[7], [.. parts.Skip(7)])])!;

    private static Type[] Places(Type type)
        => type.GetGenericArguments() is { Length: 8 } eight ? [.. eight.Take(7), .. Places(eight[7])] : type.GetGenericArguments();
}

/// <summary>Dictionaries, which keep their comparer.</summary>
internal sealed class DictionaryContainer<TKey, TValue> : Container
    where TKey : notnull
{
    /// <inheritdoc/>
    public override bool IsDictionary => true;

    /// <inheritdoc/>
    public override IEnumerable<Part> Parts(object value, string path)
        => Pairs(value).Select(pair => new Part($"{path}[{Tree.Quoted(pair.Key)}]", pair.Value, pair.Key, typeof(TValue)));

    /// <inheritdoc/>
    public override object Rebuild(object value, IReadOnlyList<object?> parts)
    {
        var pairs = Pairs(value).Zip(parts, (pair, part) => KeyValuePair.Create(pair.Key, (TValue)part!)).ToList();
        switch (value)
        {
            case IImmutableDictionary<TKey, TValue> immutable:
                return immutable.SetItems(pairs);
            case FrozenDictionary<TKey, TValue> frozen:
                return pairs.ToFrozenDictionary(frozen.Comparer);
            case IDictionary<TKey, TValue> { IsReadOnly: false }:
                var twin = Empty(value);
                pairs.ForEach(twin.Add);
                return twin;
            default:
                return Made(value.GetType(), new Dictionary<TKey, TValue>(pairs));
        }
    }

    private static IDictionary<TKey, TValue> Empty(object value)
    {
        var type = value.GetType();
        var comparer = type.GetProperty("Comparer");
        var keeps = comparer is not null && type.GetConstructor([comparer.PropertyType]) is not null;
        return (IDictionary<TKey, TValue>)Activator.CreateInstance(type, keeps ? [comparer!.GetValue(value)] : [])!;
    }

    private static IEnumerable<KeyValuePair<TKey, TValue>> Pairs(object value) => (IEnumerable<KeyValuePair<TKey, TValue>>)value;
}

/// <summary>Lists and arrays.</summary>
internal sealed class ListContainer<T> : Container
{
    /// <inheritdoc/>
    public override bool IsList => true;

    /// <inheritdoc/>
    public override IEnumerable<Part> Parts(object value, string path)
        => ((IEnumerable<T>)value).Select((item, i) => new Part($"{path}[{i}]", item, i, typeof(T)));

    /// <inheritdoc/>
    public override object Rebuild(object value, IReadOnlyList<object?> parts)
    {
        T[] items = [.. parts.Select(part => (T)part!)];
        var type = value.GetType();
        switch (value)
        {
            case IImmutableList<T> immutable:
                return immutable.Clear().AddRange(items);
            case ICollection<T> { IsReadOnly: false } when type.GetConstructor([]) is not null:
                var twin = (ICollection<T>)Activator.CreateInstance(type)!;
                Array.ForEach(items, twin.Add);
                return twin;
            default:
                // No variable can be of the compiler's and LINQ's own types, so an array does as well.
                return value is T[] || type.Name[0] == '<' || type.Namespace == "System.Linq" ? items : Made(type, items);
        }
    }
}

/// <summary>Records, and types with init properties: part by part, in the order of their fields.</summary>
internal sealed class RecordContainer(Type type) : Container
{
    private static readonly MethodInfo Clone = typeof(object).GetMethod(nameof(MemberwiseClone), BindingFlags.Instance | BindingFlags.NonPublic)!;
    private readonly IReadOnlyList<FieldInfo> fields = Fields(type);

    /// <summary>Tell whether a type is a record, or has an init property.</summary>
    public static bool Fits(Type type)
        => type.GetMethod("PrintMembers", BindingFlags.Instance | BindingFlags.NonPublic, [typeof(StringBuilder)]) is not null
            || type.GetProperties().Any(property => property.SetMethod?.ReturnParameter.GetRequiredCustomModifiers()
                .Contains(typeof(IsExternalInit)) == true);

    /// <inheritdoc/>
    public override IEnumerable<Part> Parts(object value, string path)
        => fields.Select(field => new Part($"{path}.{Name(field)}", field.GetValue(value), Name(field), field.FieldType));

    /// <inheritdoc/>
    public override object Rebuild(object value, IReadOnlyList<object?> parts)
    {
        // No constructor runs: they were for the whole.
        var twin = Clone.Invoke(value, null)!;
        foreach (var (field, part) in fields.Zip(parts))
        {
            field.SetValue(twin, part);
        }

        return twin;
    }

    /// <summary>Name a field; that of a property has its name in angle brackets.</summary>
    private static string Name(FieldInfo field) => field.Name[0] == '<' ? field.Name[1..field.Name.IndexOf('>', StringComparison.Ordinal)] : field.Name;
}
