using System.Reflection;

namespace BridgeSharp.Host.Conformance;

/// <summary>An argument that a case gives by name.</summary>
/// <param name="Names">PyTorch's name first, then what TorchSharp may call it; <c>a+b</c> are two parameters for a list of two.</param>
/// <param name="Value">Its value.</param>
internal sealed record Argument(IReadOnlyList<string> Names, object? Value);

/// <summary>Calls the overload that takes the given inputs by position and the given arguments by name.</summary>
internal static class Binder
{
    /// <summary>Call the fitting overload with the fewest parameters.</summary>
    /// <param name="overloads">The candidates.</param>
    /// <param name="inputs">What goes first, in order; the first of them is the object of an instance method.</param>
    /// <param name="arguments">What goes by name.</param>
    /// <param name="target">The object of instance methods, where it is no input.</param>
    /// <returns>What the method returns.</returns>
    /// <exception cref="MissingMethodException">No overload fits.</exception>
    /// <exception cref="NotSupportedException">One fits that reflection cannot call.</exception>
    public static object? Call(IReadOnlyList<MethodInfo> overloads, IReadOnlyList<object?> inputs, IReadOnlyList<Argument> arguments, object? target = null)
    {
        foreach (var method in overloads.OrderBy(TakesSpans).ThenBy(candidate => !candidate.IsStatic).ThenBy(candidate => candidate.GetParameters().Length))
        {
            var own = target ?? (method.IsStatic || inputs.Count == 0 ? null : inputs[0]);
            var rest = target is null && !method.IsStatic ? inputs.Skip(1) : inputs;
            if ((method.IsStatic || method.DeclaringType!.IsInstanceOfType(own)) && Match(method.GetParameters(), [.. rest], arguments, target is not null) is { } matched)
            {
                if (TakesSpans(method))
                {
                    throw new NotSupportedException($"{Signature(method)} takes a span, which reflection cannot pass");
                }

                return method.Invoke(own, BindingFlags.DoNotWrapExceptions | BindingFlags.OptionalParamBinding, null, matched, null);
            }
        }

        throw new MissingMethodException(Complaint(overloads, inputs, arguments));
    }

    /// <summary>Whether two names are one, but for their case and underscores.</summary>
    public static bool SameName(string one, string other) => Plain(one).Equals(Plain(other), StringComparison.OrdinalIgnoreCase);

    private static string Plain(string name) => name.Replace("_", "", StringComparison.Ordinal);

    private static bool TakesSpans(MethodInfo method) => method.GetParameters().Any(parameter => parameter.ParameterType.IsByRefLike);

    /// <summary>The type of a parameter, an array for a span.</summary>
    private static Type TypeOf(ParameterInfo parameter)
        => parameter.ParameterType.IsByRefLike ? parameter.ParameterType.GetGenericArguments()[0].MakeArrayType() : parameter.ParameterType;

    private static object?[]? Match(ParameterInfo[] parameters, IReadOnlyList<object?> inputs, IReadOnlyList<Argument> arguments, bool nulls)
    {
        if (inputs.Count > parameters.Length)
        {
            return null;
        }

        var matched = new object?[parameters.Length];
        var filled = new bool[parameters.Length];
        for (var i = 0; i < inputs.Count; i++)
        {
            filled[i] = Values.TryConvert(inputs[i], TypeOf(parameters[i]), out matched[i]);
            if (!filled[i])
            {
                return null;
            }
        }

        return arguments.All(argument => Fill(argument, parameters, matched, filled)) && Complete(parameters, matched, filled, nulls) ? matched : null;
    }

    private static bool Fill(Argument argument, ParameterInfo[] parameters, object?[] matched, bool[] filled)
        => argument.Names.Any(name => name.Split('+') is { Length: > 1 } parts
            ? argument.Value is IReadOnlyList<object?> values && values.Count == parts.Length
                && parts.Zip(values).All(pair => FillOne(pair.First, pair.Second, parameters, matched, filled))
            : FillOne(name, argument.Value, parameters, matched, filled));

    private static bool FillOne(string name, object? value, ParameterInfo[] parameters, object?[] matched, bool[] filled)
    {
        var place = Array.FindIndex(parameters, parameter => SameName(parameter.Name!, name));
        if (place < 0 || filled[place] || !Values.TryConvert(value, TypeOf(parameters[place]), out matched[place]))
        {
            return false;
        }

        return filled[place] = true;
    }

    private static bool Complete(ParameterInfo[] parameters, object?[] matched, bool[] filled, bool nulls)
    {
        for (var i = 0; i < parameters.Length; i++)
        {
            var type = parameters[i].ParameterType;
            if (filled[i])
            {
                continue;
            }

            if (parameters[i].HasDefaultValue)
            {
                matched[i] = Type.Missing;
            }
            else if (parameters[i].IsDefined(typeof(ParamArrayAttribute)))
            {
                matched[i] = Array.CreateInstance(type.GetElementType()!, 0);
            }
            else if (!nulls || (type.IsValueType && Nullable.GetUnderlyingType(type) is null))
            {
                // A forward takes null for what it can do without; anything else has no value to take.
                return false;
            }
        }

        return true;
    }

    private static string Complaint(IReadOnlyList<MethodInfo> overloads, IReadOnlyList<object?> inputs, IReadOnlyList<Argument> arguments)
    {
        var known = overloads.SelectMany(method => method.GetParameters()).Select(parameter => parameter.Name!).ToList();
        string[] unknown = [.. arguments.Where(argument => !argument.Names.SelectMany(name => name.Split('+')).Any(name => known.Exists(own => SameName(own, name)))).Select(argument => argument.Names[0])];
        if (unknown.Length > 0)
        {
            return $"no argument {string.Join(", ", unknown)}";
        }

        var given = inputs.Select(Values.Describe).Concat(arguments.Select(argument => $"{argument.Names[0]}: {Values.Describe(argument.Value)}"));
        return $"no overload for ({string.Join(", ", given)}); it has {string.Join(" or ", overloads.Select(Signature))}";
    }

    private static string Signature(MethodInfo method)
        => $"({string.Join(", ", method.GetParameters().Select(parameter => $"{Values.TypeName(parameter.ParameterType)} {parameter.Name}"))})";
}
