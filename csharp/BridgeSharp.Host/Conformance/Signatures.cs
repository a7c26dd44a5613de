using System.Globalization;
using System.Reflection;

namespace BridgeSharp.Host.Conformance;

/// <summary>Tells what parameters TorchSharp's methods have, and their defaults.</summary>
internal static class Signatures
{
    /// <summary>List the parameters of all overloads of a name.</summary>
    public static object Of(string name) => new
    {
        overloads = Lookup.Methods(name).Select(method => method.GetParameters().Select(Describe)),
    };

    private static object Describe(ParameterInfo parameter) => new
    {
        name = parameter.Name,
        type = Values.TypeName(parameter.ParameterType),
        optional = parameter.HasDefaultValue,
        @default = parameter.HasDefaultValue ? Default(parameter) : null,
    };

    private static object? Default(ParameterInfo parameter)
    {
        var type = Nullable.GetUnderlyingType(parameter.ParameterType) ?? parameter.ParameterType;
        return parameter.DefaultValue switch
        {
            null => null,
            { } value when type.IsEnum => Enum.GetName(type, value),
            bool or string => parameter.DefaultValue,
            var value => Convert.ToDouble(value, CultureInfo.InvariantCulture),
        };
    }
}
