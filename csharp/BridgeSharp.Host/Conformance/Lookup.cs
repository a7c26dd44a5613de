using System.Reflection;
using static TorchSharp.torch;

namespace BridgeSharp.Host.Conformance;

/// <summary>Finds TorchSharp's methods by PyTorch's dotted names.</summary>
internal static class Lookup
{
    private const BindingFlags Static = BindingFlags.Public | BindingFlags.Static;
    private const BindingFlags Instance = BindingFlags.Public | BindingFlags.Instance;

    /// <summary>List the overloads of a name, functions of torch before methods of a tensor.</summary>
    /// <param name="name">Such as <c>nn.Linear</c>, <c>Tensor.add_</c>, or <c>add</c>: a function of torch or a method of a tensor.</param>
    /// <returns>At least one method.</returns>
    /// <exception cref="MissingMethodException">TorchSharp has no such name.</exception>
    public static IReadOnlyList<MethodInfo> Methods(string name)
    {
        var parts = name.Split('.');
        var method = parts[^1];
        IEnumerable<MethodInfo> found = parts is ["Tensor", _]
            ? typeof(Tensor).GetMethods(Instance)
            : Holder(parts[..^1])?.GetMethods(Static) ?? [];
        if (parts.Length == 1)
        {
            found = found.Concat(typeof(Tensor).GetMethods(Instance));
        }

        MethodInfo[] overloads = [.. found.Where(candidate => candidate.Name == method && Plain(candidate))];
        return overloads.Length > 0 ? overloads : throw new MissingMethodException($"no torch.{name}");
    }

    /// <summary>List the overloads of a module's forward.</summary>
    public static IReadOnlyList<MethodInfo> Forward(nn.Module module)
        => [.. module.GetType().GetMethods(Instance).Where(candidate => candidate.Name == "forward" && Plain(candidate))];

    private static Type? Holder(IEnumerable<string> parts)
        => parts.Aggregate<string, Type?>(typeof(TorchSharp.torch), (type, part) => type?.GetNestedType(part, BindingFlags.Public));

    private static bool Plain(MethodInfo method)
        => !method.IsGenericMethodDefinition && method.GetParameters().All(parameter => !parameter.ParameterType.IsByRef);
}
