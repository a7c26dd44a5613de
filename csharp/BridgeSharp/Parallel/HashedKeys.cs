using System.Collections;
using System.Collections.Frozen;
using System.Collections.Immutable;

namespace BridgeSharp.Parallel;

/// <summary>Collections that find their items by hash code: the copy of an object has another one.</summary>
internal static class HashedKeys
{
    private static readonly HashSet<Type> Frozen =
        [typeof(ImmutableDictionary<,>), typeof(ImmutableHashSet<>), typeof(FrozenDictionary<,>), typeof(FrozenSet<>)];

    /// <summary>Tell whether a collection cannot change, and would not find the copies of its keys.</summary>
    public static bool AreLost(object collection, IReadOnlySet<object> copied)
        => Definitions(collection).Any(Frozen.Contains)
            && Keys(collection).SelectMany(ObjectLinks.Through).Any(link => link.Target is { } key && copied.Contains(key));

    /// <summary>Put the items of a copied collection where the hash codes of their copies say.</summary>
    public static void Restore(object collection)
    {
        if (collection is not IEnumerable items || !Definitions(collection).Any(ObjectLinks.IsCollection))
        {
            return;
        }

        if (items is IDictionary { IsReadOnly: false } dictionary)
        {
            RestoreDictionary(dictionary);
        }
        else if (Array.Find(items.GetType().GetInterfaces(), IsSet) is { } type)
        {
            RestoreSet(items, typeof(ICollection<>).MakeGenericType(type.GetGenericArguments()));
        }
    }

    private static void RestoreDictionary(IDictionary dictionary)
    {
        var entries = ObjectLinks.Entries(dictionary).ToList();
        if (!entries.TrueForAll(entry => ObjectLinks.IsConstant(entry.Key)))
        {
            dictionary.Clear();
            entries.ForEach(entry => dictionary.Add(entry.Key, entry.Value));
        }
    }

    private static void RestoreSet(IEnumerable set, Type type)
    {
        if (type.GetProperty("IsReadOnly")!.GetValue(set) is true)
        {
            return;
        }

        var items = set.Cast<object>().ToList();
        type.GetMethod("Clear")!.Invoke(set, null);
        items.ForEach(item => type.GetMethod("Add")!.Invoke(set, [item]));
    }

    private static IEnumerable<object?> Keys(object collection)
        => collection is IDictionary dictionary ? dictionary.Keys.Cast<object?>() : ((IEnumerable)collection).Cast<object?>();

    private static IEnumerable<Type> Definitions(object value)
        => ObjectLinks.Classes(value.GetType()).Select(type => type.IsGenericType ? type.GetGenericTypeDefinition() : type);

    private static bool IsSet(Type type) => type.IsGenericType && type.GetGenericTypeDefinition() == typeof(ISet<>);
}
