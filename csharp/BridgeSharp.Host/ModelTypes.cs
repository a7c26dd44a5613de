using System.Reflection;
using System.Runtime.Loader;
using System.Text.Json.Nodes;
using BridgeSharp.Models;
using BridgeSharp.Trace;
using static TorchSharp.torch;

namespace BridgeSharp.Host;

/// <summary>Finds and makes models and loops by the name of their type, in BridgeSharp.Models or in a user's own assembly.</summary>
internal static class ModelTypes
{
    /// <summary>Find a model's type.</summary>
    /// <param name="name">Its full name.</param>
    /// <param name="assembly">The path of its assembly; null means BridgeSharp.Models.</param>
    /// <returns>The type.</returns>
    public static Type Find(string name, string? assembly)
    {
        var type = Find("trainer", name, assembly, IsModel);
        return IsModel(type)
            ? type
            : throw new ArgumentException($"trainer: expected a class derived from TorchSharp's Module, got {name}");
    }

    /// <summary>Find the type of a user's own loop: a class with a method <c>step(Tensor, Tensor)</c>.</summary>
    /// <param name="name">Its full name.</param>
    /// <param name="assembly">The path of its assembly.</param>
    /// <returns>The type.</returns>
    public static Type FindLoop(string name, string assembly)
    {
        var type = Find("loop", name, assembly, IsLoop);
        return IsLoop(type)
            ? type
            : throw new ArgumentException($"loop: expected a class with step(Tensor, Tensor), got {name}");
    }

    /// <summary>Make an object with a constructor that takes these arguments; optional ones may be left out.</summary>
    public static object Create(Type type, IReadOnlyList<object?> arguments)
    {
        foreach (var constructor in type.GetConstructors())
        {
            if (Match(constructor.GetParameters(), arguments) is { } matched)
            {
                return constructor.Invoke(BindingFlags.DoNotWrapExceptions, null, matched, null);
            }
        }

        var known = type.GetConstructors().Select(constructor => $"({string.Join(", ", constructor.GetParameters().Select(parameter => $"{parameter.ParameterType.Name} {parameter.Name}"))})");
        var given = string.Join(", ", arguments.Select(argument => argument ?? "null"));
        throw new ArgumentException($"trainer: expected arguments for {type.FullName}{string.Join(" or ", known)}, got ({given})");
    }

    private static Type Find(string verb, string name, string? assembly, Func<Type, bool> wanted)
    {
        var home = assembly is null ? typeof(LeNet).Assembly : Load(verb, assembly);
        if (home.GetType(name) is { } type)
        {
            return type;
        }

        var known = home.GetExportedTypes().Where(wanted).Select(candidate => candidate.FullName);
        throw new ArgumentException($"{verb}: expected a type of {home.GetName().Name} ({string.Join(", ", known)}), got {name}");
    }

    private static bool IsLoop(Type type) => !type.IsAbstract && type.GetMethod("step", [typeof(Tensor), typeof(Tensor)]) is not null;

    /// <summary>Make a model; its constructor's arguments are a list, or an object of names.</summary>
    public static nn.Module Create(Type type, JsonNode arguments)
    {
        if (arguments is not JsonObject named)
        {
            return (nn.Module)Create(type, [.. arguments.AsArray().Select(Scalars.Read)]);
        }

        foreach (var parameters in type.GetConstructors().Select(constructor => constructor.GetParameters()))
        {
            var known = parameters.Select(parameter => parameter.Name!).ToHashSet();
            if (named.All(argument => known.Contains(argument.Key))
                && parameters.All(parameter => parameter.HasDefaultValue || named.ContainsKey(parameter.Name!)))
            {
                return (nn.Module)Create(type, [.. parameters.Select(parameter => named.TryGetPropertyValue(parameter.Name!, out var value) ? Scalars.Read(value) : parameter.DefaultValue)]);
            }
        }

        throw new ArgumentException($"trainer: expected a constructor of {type.FullName} with arguments {string.Join(", ", named.Select(argument => argument.Key))}, found none");
    }

    private static bool IsModel(Type type) => type.IsSubclassOf(typeof(nn.Module)) && !type.IsAbstract && !type.ContainsGenericParameters;

    private static Assembly Load(string verb, string path)
    {
        var full = Path.GetFullPath(path);
        if (!File.Exists(full))
        {
            throw new FileNotFoundException($"{verb}: expected an assembly, found no file {full}", full);
        }

        return PortAssembly.load(full, AssemblyLoadContext.GetLoadContext(typeof(ModelTypes).Assembly)!);
    }

    private static object?[]? Match(ParameterInfo[] parameters, IReadOnlyList<object?> arguments)
    {
        if (arguments.Count > parameters.Length || parameters.Skip(arguments.Count).Any(parameter => !parameter.HasDefaultValue))
        {
            return null;
        }

        var matched = parameters.Select(parameter => parameter.DefaultValue).ToArray();
        for (var i = 0; i < arguments.Count; i++)
        {
            if (!Convertible(arguments[i], parameters[i].ParameterType, out matched[i]))
            {
                return null;
            }
        }

        return matched;
    }

    private static bool Convertible(object? value, Type type, out object? converted)
    {
        type = Nullable.GetUnderlyingType(type) ?? type;
        converted = value;
        if (value is null)
        {
            return !type.IsValueType;
        }

        if (type.IsInstanceOfType(value))
        {
            return true;
        }

        var number = value is long && (type == typeof(int) || type == typeof(short) || type == typeof(byte) || type == typeof(double) || type == typeof(float));
        if (!number && !(value is double && type == typeof(float)))
        {
            return false;
        }

        converted = Convert.ChangeType(value, type, null);
        return true;
    }
}
