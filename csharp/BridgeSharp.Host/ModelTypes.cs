using System.Reflection;
using System.Runtime.Loader;
using System.Text.Json.Nodes;
using BridgeSharp.Models;
using static TorchSharp.torch;

namespace BridgeSharp.Host;

/// <summary>Finds and makes models by the name of their type, in BridgeSharp.Models or in a user's own assembly.</summary>
internal static class ModelTypes
{
    /// <summary>Find a model's type.</summary>
    /// <param name="name">Its full name.</param>
    /// <param name="assembly">The path of its assembly; null means BridgeSharp.Models.</param>
    /// <returns>The type.</returns>
    public static Type Find(string name, string? assembly)
    {
        var home = assembly is null ? typeof(LeNet).Assembly : Load(assembly);
        var type = home.GetType(name);
        if (type is null)
        {
            var known = home.GetExportedTypes().Where(IsModel).Select(candidate => candidate.FullName);
            throw new ArgumentException($"trainer: expected a type of {home.GetName().Name} ({string.Join(", ", known)}), got {name}");
        }

        return IsModel(type)
            ? type
            : throw new ArgumentException($"trainer: expected a class derived from TorchSharp's Module, got {name}");
    }

    /// <summary>Make a model with a constructor that takes these arguments; optional ones may be left out.</summary>
    public static nn.Module Create(Type type, IReadOnlyList<object?> arguments)
    {
        foreach (var constructor in type.GetConstructors())
        {
            if (Match(constructor.GetParameters(), arguments) is { } matched)
            {
                return (nn.Module)constructor.Invoke(BindingFlags.DoNotWrapExceptions, null, matched, null);
            }
        }

        var known = type.GetConstructors().Select(constructor => $"({string.Join(", ", constructor.GetParameters().Select(parameter => $"{parameter.ParameterType.Name} {parameter.Name}"))})");
        var given = string.Join(", ", arguments.Select(argument => argument ?? "null"));
        throw new ArgumentException($"trainer: expected arguments for {type.FullName}{string.Join(" or ", known)}, got ({given})");
    }

    /// <summary>Make a model; its constructor's arguments are a list, or an object of names.</summary>
    public static nn.Module Create(Type type, JsonNode arguments)
    {
        if (arguments is not JsonObject named)
        {
            return Create(type, [.. arguments.AsArray().Select(Scalars.Read)]);
        }

        foreach (var parameters in type.GetConstructors().Select(constructor => constructor.GetParameters()))
        {
            var known = parameters.Select(parameter => parameter.Name!).ToHashSet();
            if (named.All(argument => known.Contains(argument.Key))
                && parameters.All(parameter => parameter.HasDefaultValue || named.ContainsKey(parameter.Name!)))
            {
                return Create(type, [.. parameters.Select(parameter => named.TryGetPropertyValue(parameter.Name!, out var value) ? Scalars.Read(value) : parameter.DefaultValue)]);
            }
        }

        throw new ArgumentException($"trainer: expected a constructor of {type.FullName} with arguments {string.Join(", ", named.Select(argument => argument.Key))}, found none");
    }

    private static bool IsModel(Type type) => type.IsSubclassOf(typeof(nn.Module)) && !type.IsAbstract && !type.ContainsGenericParameters;

    private static Assembly Load(string path)
    {
        var full = Path.GetFullPath(path);
        if (!File.Exists(full))
        {
            throw new FileNotFoundException($"trainer: expected an assembly, found no file {full}", full);
        }

        // What the user's assembly needs lies beside it; what this process has already loaded stays the one copy.
        var context = AssemblyLoadContext.GetLoadContext(typeof(ModelTypes).Assembly)!;
        var resolver = new AssemblyDependencyResolver(full);
        context.Resolving += (own, name) => resolver.ResolveAssemblyToPath(name) is { } found ? own.LoadFromAssemblyPath(found) : null;
        return context.LoadFromAssemblyPath(full);
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
