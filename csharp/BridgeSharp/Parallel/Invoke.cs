using System.Collections.Concurrent;
using System.Reflection;
using System.Runtime.CompilerServices;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>Calls a module whose argument types are known only at run time.</summary>
internal static class Invoke
{
    private static readonly ConcurrentDictionary<Type, MethodInfo> Calls = new();

    /// <summary>Call a module, hooks included; a tuple is spread over several arguments.</summary>
    /// <param name="module">A <c>Module&lt;T, …, TResult&gt;</c>.</param>
    /// <param name="input">Its argument, or a tuple of its arguments.</param>
    /// <returns>The output.</returns>
    public static object Call(nn.Module module, object input)
    {
        if (module is nn.Module<Tensor, Tensor> plain && input is Tensor tensor)
        {
            return plain.call(tensor);
        }

        var method = Calls.GetOrAdd(module.GetType(), Find);
        var parameters = method.GetParameters();
        object?[] arguments = input is ITuple tuple && !(parameters.Length == 1 && parameters[0].ParameterType.IsInstanceOfType(input))
            ? [.. Enumerable.Range(0, tuple.Length).Select(i => tuple[i])]
            : [input];
        Check(module, parameters, arguments);
        return method.Invoke(module, BindingFlags.DoNotWrapExceptions, null, arguments, null)!;
    }

    private static MethodInfo Find(Type type)
    {
        for (var own = type; own is not null; own = own.BaseType)
        {
            var method = own.GetMethods(BindingFlags.Public | BindingFlags.Instance | BindingFlags.DeclaredOnly)
                .FirstOrDefault(candidate => candidate.Name == "call");
            if (method is not null)
            {
                return method;
            }
        }

        throw new ArgumentException($"parallel_apply: expected a Module with a forward method, got {type.FullName}");
    }

    private static void Check(nn.Module module, ParameterInfo[] parameters, object?[] arguments)
    {
        var fits = parameters.Length == arguments.Length
            && parameters.Zip(arguments).All(pair => pair.Second is null || pair.First.ParameterType.IsInstanceOfType(pair.Second));
        if (!fits)
        {
            var expected = string.Join(", ", parameters.Select(parameter => parameter.ParameterType.Name));
            var actual = string.Join(", ", arguments.Select(argument => argument?.GetType().Name ?? "null"));
            throw new ArgumentException($"parallel_apply: expected {module.GetName()} to be called with ({expected}), got ({actual})");
        }
    }
}
