using System.Reflection;
using System.Reflection.Emit;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>Finds code that runs a layer by its <c>forward</c>, which passes the layer's hooks by.</summary>
internal static class ForwardCalls
{
    private const BindingFlags Declared =
        BindingFlags.Instance | BindingFlags.Static | BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.DeclaredOnly;

    private static readonly Dictionary<ushort, OpCode> Codes = typeof(OpCodes).GetFields(BindingFlags.Public | BindingFlags.Static)
        .Select(field => (OpCode)field.GetValue(null)!).ToDictionary(code => (ushort)code.Value);

    /// <summary>Find such a call in a class that is not TorchSharp's, in its lambdas and in its bases.</summary>
    /// <returns>The method that has it, such as <c>Model.forward</c>, or null.</returns>
    public static string? Find(Type type)
    {
        for (var own = type; own is not null && own.Assembly != typeof(nn.Module).Assembly; own = own.BaseType)
        {
            var closures = own.GetNestedTypes(BindingFlags.NonPublic).Where(nested => nested.Name.StartsWith('<'));
            var methods = closures.Prepend(own).SelectMany(part => part.GetMethods(Declared));
            if (methods.FirstOrDefault(method => Called(method).Any(PassesHooksBy)) is { } found)
            {
                return $"{own.Name}.{(found.Name is ['<', .. var written] ? written.Split('>')[0] : found.Name)}";
            }
        }

        return null;
    }

    private static bool PassesHooksBy(MethodBase? method)
        => method is { Name: "forward", DeclaringType: { } type }
            && (type == typeof(nn.Module<Tensor, Tensor>) || type == typeof(Linear) || type.IsAssignableTo(typeof(Convolution)));

    /// <summary>List the methods that a method calls, from its IL.</summary>
    private static IEnumerable<MethodBase?> Called(MethodInfo method)
    {
        var il = method.GetMethodBody()?.GetILAsByteArray() ?? [];
        var typeArguments = method.DeclaringType!.GetGenericArguments();
        var methodArguments = method.GetGenericArguments();
        for (var at = 0; at < il.Length;)
        {
            var code = Codes[il[at] == 0xFE ? (ushort)(0xFE00 | il[at + 1]) : il[at]];
            at += code.Size;
            if (code.OperandType == OperandType.InlineMethod)
            {
                yield return method.Module.ResolveMethod(BitConverter.ToInt32(il, at), typeArguments, methodArguments);
            }

            at += OperandSize(code, il, at);
        }
    }

    private static int OperandSize(OpCode code, byte[] il, int at) => code.OperandType switch
    {
        OperandType.InlineNone => 0,
        OperandType.ShortInlineBrTarget or OperandType.ShortInlineI or OperandType.ShortInlineVar => 1,
        OperandType.InlineVar => 2,
        OperandType.InlineI8 or OperandType.InlineR => 8,
        OperandType.InlineSwitch => 4 * (1 + BitConverter.ToInt32(il, at)),
        _ => 4,
    };
}
