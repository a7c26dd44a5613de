using Mono.Cecil;

namespace BridgeSharp.Trace;

/// <summary>The types in a called method's signature, as its caller sees them.</summary>
internal static class Closed
{
    /// <summary>Put the arguments of a method and of its class in the place of their parameters.</summary>
    public static TypeReference Type(TypeReference type, MethodReference method) => type switch
    {
        GenericParameter { Type: GenericParameterType.Type } own when method.DeclaringType is GenericInstanceType holder => holder.GenericArguments[own.Position],
        GenericParameter { Type: GenericParameterType.Method } own when method is GenericInstanceMethod instance => instance.GenericArguments[own.Position],
        ByReferenceType reference => new ByReferenceType(Type(reference.ElementType, method)),
        ArrayType { IsVector: true } array => new ArrayType(Type(array.ElementType, method)),
        ArrayType array => new ArrayType(Type(array.ElementType, method), array.Rank),
        IModifierType modified => Type(modified.ElementType, method),
        GenericInstanceType generic => Instance(generic, method),
        _ => type,
    };

    /// <summary>Tell whether a value cannot be kept in an object: a reference, a pointer, a span.</summary>
    public static bool OnlyOnStack(TypeReference type)
        => type is ByReferenceType or PointerType or FunctionPointerType
            || (type.IsValueType && type is not GenericParameter && type.Resolve() is { } definition
                && definition.CustomAttributes.Any(attribute => attribute.AttributeType.Name == "IsByRefLikeAttribute"));

    private static GenericInstanceType Instance(GenericInstanceType generic, MethodReference method)
    {
        var instance = new GenericInstanceType(generic.ElementType);
        foreach (var argument in generic.GenericArguments)
        {
            instance.GenericArguments.Add(Type(argument, method));
        }

        return instance;
    }
}
