using System.Collections;
using System.Globalization;
using System.Runtime.CompilerServices;
using BridgeSharp.Parity;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Host.Conformance;

/// <summary>Turns the values of a case into those that a parameter takes.</summary>
internal static class Values
{
    /// <summary>Convert a value to a type, where PyTorch's caller would expect it.</summary>
    public static bool TryConvert(object? value, Type type, out object? converted)
    {
        var inner = Nullable.GetUnderlyingType(type) ?? type;
        converted = value switch
        {
            null => null,
            bool or Tensor => inner.IsInstanceOfType(value) ? value : OfTensor(value, inner),
            long or double => Number(value, inner),
            string text => inner == typeof(string) ? text : inner.IsEnum ? EnumValue(text, inner) : null,
            Dictionary<string, object?> special => Special.Convert(special, inner),
            IReadOnlyList<object?> list => Sequence(list, inner),
            _ => inner.IsInstanceOfType(value) ? value : null,
        };
        return converted is not null || (value is null && (inner != type || !type.IsValueType));
    }

    /// <summary>Name a type as C# does.</summary>
    public static string TypeName(Type type) => Nullable.GetUnderlyingType(type) is { } inner
        ? $"{TypeName(inner)}?"
        : type.IsGenericType ? $"{type.Name.Split('`')[0]}<{string.Join(", ", type.GetGenericArguments().Select(TypeName))}>" : type.Name;

    /// <summary>Describe a value in a few words.</summary>
    public static string Describe(object? value) => value switch
    {
        null => "null",
        Tensor tensor => $"{Digest.dtype_name(tensor.dtype)}[{string.Join(", ", tensor.shape)}]",
        IReadOnlyList<object?> list => $"[{string.Join(", ", list.Select(Describe))}]",
        Dictionary<string, object?> special => $"{{{string.Join(", ", special.Select(part => $"{part.Key}: {Describe(part.Value)}"))}}}",
        _ => System.Convert.ToString(value, CultureInfo.InvariantCulture)!,
    };

    private static Parameter? OfTensor(object value, Type type)
        => value is Tensor tensor && type == typeof(Parameter) ? new Parameter(tensor.detach().clone(), tensor.requires_grad) : null;

    private static object? Number(object value, Type type)
    {
        if (type == typeof(Scalar))
        {
            return value is long whole ? whole.ToScalar() : ((double)value).ToScalar();
        }

        var takes = type == typeof(double) || type == typeof(float)
            || (value is long && (type == typeof(long) || type == typeof(int) || type == typeof(short) || type == typeof(byte)));
        return takes ? System.Convert.ChangeType(value, type, CultureInfo.InvariantCulture) : null;
    }

    private static object? EnumValue(string text, Type type)
        => Enum.GetNames(type).FirstOrDefault(name => Binder.SameName(name, text)) is { } found ? Enum.Parse(type, found) : null;

    private static object? Sequence(IReadOnlyList<object?> list, Type type)
    {
        if (type == typeof(Size))
        {
            return list.All(item => item is long) ? (object)new Size([.. list.Cast<long>()]) : null;
        }

        if (type.IsAssignableTo(typeof(ITuple)))
        {
            var parts = type.GetGenericArguments();
            return parts.Length == list.Count && Items(list, parts) is { } items ? Activator.CreateInstance(type, items) : null;
        }

        var element = type.IsGenericType ? type.GetGenericArguments()[0] : type.GetElementType();
        if (element is null || Items(list, Enumerable.Repeat(element, list.Count)) is not { } values)
        {
            return null;
        }

        var array = Array.CreateInstance(element, values.Length);
        ((ICollection)values).CopyTo(array, 0);
        var made = type.IsInstanceOfType(array) ? array : Activator.CreateInstance(typeof(List<>).MakeGenericType(element), array);
        return type.IsInstanceOfType(made) ? made : null;
    }

    private static object?[]? Items(IEnumerable<object?> list, IEnumerable<Type> types)
    {
        var items = new List<object?>();
        foreach (var (item, type) in list.Zip(types))
        {
            if (!TryConvert(item, type, out var converted))
            {
                return null;
            }

            items.Add(converted);
        }

        return [.. items];
    }
}
