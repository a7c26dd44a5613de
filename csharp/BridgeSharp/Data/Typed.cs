using System.Collections;
using System.Runtime.CompilerServices;
using BridgeSharp.Parallel;

namespace BridgeSharp.Data;

/// <summary>Batches of the type that the caller named.</summary>
internal static class Typed
{
    /// <summary>Give a batch the type that the caller named: a tuple of tensors may be an <c>(object, object)</c>.</summary>
    /// <exception cref="ArgumentException">The batch is something else.</exception>
    public static T As<T>(object batch) => Fits(batch, typeof(T), out var result)
        ? (T)result!
        : throw new ArgumentException($"Loader: expected batches of type {typeof(T)}, got {Tree.Describe(batch)}");

    private static bool Fits(object? value, Type type, out object? result)
    {
        result = value;
        if (value is null ? !type.IsValueType : type.IsInstanceOfType(value))
        {
            return true;
        }

        var arguments = type.GetGenericArguments();
        switch (value)
        {
            case ITuple tuple when type.IsAssignableTo(typeof(ITuple)) && tuple.Length == arguments.Length:
                var parts = new object?[tuple.Length];
                result = Enumerable.Range(0, tuple.Length).All(i => Fits(tuple[i], arguments[i], out parts[i]))
                    ? Activator.CreateInstance(type, parts)
                    : null;
                return result is not null;
            case IDictionary dictionary when arguments.Length == 2 && type.IsAssignableTo(typeof(IDictionary)):
                var copy = (IDictionary)Activator.CreateInstance(type)!;
                result = copy;
                foreach (var key in dictionary.Keys)
                {
                    if (!Fits(dictionary[key], arguments[1], out var part))
                    {
                        return false;
                    }

                    copy.Add(key, part);
                }

                return true;
            default:
                return false;
        }
    }
}
