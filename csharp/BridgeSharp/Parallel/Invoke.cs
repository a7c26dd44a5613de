using System.Collections.Concurrent;
using System.Reflection;
using System.Runtime.CompilerServices;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>Calls a module whose argument types are known only at run time.</summary>
internal static class Invoke
{
    private static readonly ConcurrentDictionary<Type, Target> Targets = new();

    /// <summary>Call a module, hooks included; a tuple is spread over several arguments, a dictionary by their names.</summary>
    /// <remarks>Spec: R3.1, R3.5.</remarks>
    /// <param name="module">A <c>Module&lt;T, …, TResult&gt;</c>.</param>
    /// <param name="input">
    /// Its argument, or a tuple of its positional arguments, or a dictionary of its keyword arguments. A module with one
    /// parameter, or without one that a key names, gets the dictionary as it is.
    /// </param>
    /// <param name="kwargs">More arguments, by the names of the parameters of <c>forward</c>.</param>
    /// <returns>The output.</returns>
    public static object Call(nn.Module module, object input, IReadOnlyDictionary<string, object?>? kwargs = null)
    {
        if (module is nn.Module<Tensor, Tensor> plain && input is Tensor tensor && kwargs is null or { Count: 0 })
        {
            return plain.call(tensor);
        }

        var target = Targets.GetOrAdd(module.GetType(), Find);
        var (positional, named) = Spread(target, input);
        var arguments = target.Bind(positional, [.. named, .. kwargs ?? new Dictionary<string, object?>()]);
        Check(module, target.Parameters, arguments);
        return target.Method.Invoke(module, BindingFlags.DoNotWrapExceptions, null, arguments, null)!;
    }

    /// <summary>Take a tuple or a dictionary of arguments apart, unless it is itself what the module takes.</summary>
    private static (object?[] Positional, IEnumerable<KeyValuePair<string, object?>> Named) Spread(Target target, object input)
    {
        if (target.Parameters is [var only] && only.ParameterType.IsInstanceOfType(input))
        {
            return ([input], []);
        }

        var parts = Tree.Children(input, "");
        return input switch
        {
            ITuple => ([.. parts!.Select(part => part.Value)], []),
            _ when Tree.IsDictionary(input) && target.AreKeywords(parts!.Select(part => part.Key))
                => ([], parts!.Select(part => KeyValuePair.Create(Keyword(part.Key), part.Value))),
            _ => ([input], []),
        };
    }

    private static string Keyword(object key) => key as string ?? throw new ArgumentException("keywords must be strings");

    private static Target Find(Type type)
    {
        for (var own = type; own is not null; own = own.BaseType)
        {
            var call = own.GetMethods(BindingFlags.Public | BindingFlags.Instance | BindingFlags.DeclaredOnly)
                .FirstOrDefault(candidate => candidate.Name == "call");
            if (call is not null)
            {
                // The parameters of call have the same types, but not the names and defaults that the module's own class gives.
                var types = Array.ConvertAll(call.GetParameters(), parameter => parameter.ParameterType);
                return new Target(call, type.GetMethod("forward", types) ?? call);
            }
        }

        throw new ArgumentException($"parallel_apply: expected a Module with a forward method, got {type.FullName}");
    }

    private static void Check(nn.Module module, ParameterInfo[] parameters, object?[] arguments)
    {
        var fits = parameters.Zip(arguments).All(pair => pair.Second is null || pair.First.ParameterType.IsInstanceOfType(pair.Second));
        if (!fits)
        {
            var expected = string.Join(", ", parameters.Select(parameter => parameter.ParameterType.Name));
            var actual = string.Join(", ", arguments.Select(argument => argument?.GetType().Name ?? "null"));
            throw new ArgumentException($"parallel_apply: expected {module.GetName()} to be called with ({expected}), got ({actual})");
        }
    }

    /// <summary>The method that runs a module, and the forward that names its parameters.</summary>
    private sealed class Target(MethodInfo method, MethodInfo forward)
    {
        private readonly string name = $"{Tree.Name(forward.DeclaringType!)}.forward()";

        /// <summary>What runs the module.</summary>
        public MethodInfo Method => method;

        /// <summary>The parameters, in order.</summary>
        public ParameterInfo[] Parameters { get; } = forward.GetParameters();

        /// <summary>Tell whether a key names one of several parameters.</summary>
        public bool AreKeywords(IEnumerable<object> keys)
            => Parameters.Length > 1 && keys.Any(key => Parameters.Any(parameter => Equals(parameter.Name, key)));

        /// <summary>Put arguments in the order of the parameters, as Python does, with its words where they do not fit.</summary>
        public object?[] Bind(object?[] positional, IReadOnlyList<KeyValuePair<string, object?>> named)
        {
            var given = Parameters.Zip(positional).ToDictionary(pair => pair.First.Name!, pair => pair.Second);
            foreach (var (key, value) in named)
            {
                if (!Parameters.Any(parameter => parameter.Name == key))
                {
                    throw new ArgumentException($"{name} got an unexpected keyword argument '{key}'");
                }

                if (!given.TryAdd(key, value))
                {
                    throw new ArgumentException($"{name} got multiple values for argument '{key}'");
                }
            }

            if (positional.Length > Parameters.Length)
            {
                throw new ArgumentException($"{name} takes {Taken()} but {positional.Length + 1} were given");
            }

            var missing = Parameters.Where(parameter => !given.ContainsKey(parameter.Name!) && !parameter.HasDefaultValue)
                .Select(parameter => $"'{parameter.Name}'").ToList();
            if (missing.Count > 0)
            {
                var plural = missing.Count > 1 ? "s" : "";
                throw new ArgumentException($"{name} missing {missing.Count} required positional argument{plural}: {Listed(missing)}");
            }

            return Array.ConvertAll(Parameters, parameter => given.GetValueOrDefault(parameter.Name!, parameter.DefaultValue));
        }

        /// <summary>Count the positional arguments as Python does, with the module itself.</summary>
        private string Taken()
        {
            var (least, most) = (Parameters.Count(parameter => !parameter.HasDefaultValue) + 1, Parameters.Length + 1);
            return least < most ? $"from {least} to {most} positional arguments" : $"{most} positional arguments";
        }

        private static string Listed(List<string> names) => names switch
        {
            [var one] => one,
            [var one, var two] => $"{one} and {two}",
            _ => $"{string.Join(", ", names.SkipLast(1))}, and {names[^1]}",
        };
    }
}
