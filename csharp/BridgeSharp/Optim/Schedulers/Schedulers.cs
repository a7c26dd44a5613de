using System.Collections;
using System.Globalization;
using System.Reflection;
using BridgeSharp.Parallel;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Schedulers by name, with the same options in both languages.</summary>
public static class Schedulers
{
    private static readonly Type[] Known =
    [
        typeof(LambdaLR), typeof(MultiplicativeLR), typeof(StepLR), typeof(MultiStepLR), typeof(ConstantLR), typeof(LinearLR),
        typeof(ExponentialLR), typeof(SequentialLR), typeof(CosineAnnealingLR), typeof(ChainedScheduler), typeof(ReduceLROnPlateau),
        typeof(CyclicLR), typeof(CosineAnnealingWarmRestarts), typeof(OneCycleLR), typeof(PolynomialLR),
    ];

    /// <summary>Make a scheduler by its name, with PyTorch's defaults.</summary>
    /// <remarks>Spec: R27.4.</remarks>
    /// <param name="name">That of PyTorch's class, such as <c>"StepLR"</c>.</param>
    /// <param name="optimizer">Whose learning rates it moves.</param>
    /// <param name="options">
    /// As PyTorch names them. <c>schedulers</c> may be described instead of made: each by a dictionary of its <c>name</c>
    /// and its options.
    /// </param>
    /// <param name="reference">Whose rules: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <returns>The scheduler.</returns>
    /// <exception cref="ArgumentException">Another name, an option that the scheduler does not have, lacks, or that is out of range.</exception>
    public static Scheduler create(
        string name, optim.Optimizer optimizer, IReadOnlyDictionary<string, object?>? options = null, string reference = "2.10")
    {
        var type = Array.Find(Known, known => known.Name == name)
            ?? throw new ArgumentException($"scheduler: expected one of {string.Join(", ", Known.Select(known => known.Name))}, got '{name}'");
        var given = options ?? new Dictionary<string, object?>();
        var constructors = type.GetConstructors();
        Check(name, constructors[0].GetParameters(), given);
        var values = new Dictionary<string, object?>(given) { ["optimizer"] = optimizer, ["reference"] = reference };
        if (values.TryGetValue("schedulers", out var described))
        {
            values["schedulers"] = StateFields.Items(described).Select(item => Described(item, optimizer, reference)).ToArray();
        }

        // LambdaLR and MultiplicativeLR have one constructor for a function and one for several.
        var constructor = constructors.First(candidate => constructors.Length == 1
            || candidate.GetParameters()[1].ParameterType.IsInstanceOfType(values["lr_lambda"]) || candidate == constructors[^1]);
        var arguments = constructor.GetParameters().Select(parameter => Argument(parameter, values)).ToArray();
        return (Scheduler)constructor.Invoke(BindingFlags.DoNotWrapExceptions, null, arguments, CultureInfo.InvariantCulture);
    }

    /// <summary>Refuse options that a scheduler does not have, or lacks.</summary>
    private static void Check(string name, ParameterInfo[] parameters, IReadOnlyDictionary<string, object?> given)
    {
        var known = parameters.Where(parameter => parameter.Name is not ("optimizer" or "reference")).ToList();
        if (given.Keys.FirstOrDefault(key => !known.Exists(parameter => parameter.Name == key)) is { } stranger)
        {
            var names = string.Join(", ", known.Select(parameter => parameter.Name));
            throw new ArgumentException($"scheduler: expected options of {name} ({names}), got '{stranger}'");
        }

        if (known.Find(parameter => !parameter.HasDefaultValue && !given.ContainsKey(parameter.Name!)) is { } missing)
        {
            throw new ArgumentException($"scheduler: expected option {missing.Name} of {name}, got {Text.Names(given.Keys)}");
        }
    }

    /// <summary>Take a scheduler, or make one that is described by its name and options.</summary>
    private static Scheduler Described(object? item, optim.Optimizer optimizer, string reference)
    {
        if (item is Scheduler made)
        {
            return made;
        }

        var options = StateFields.Entries(item);
        return options.Remove("name", out var name)
            ? create(StateFields.Typed<string>(name), optimizer, options, reference)
            : throw new ArgumentException($"scheduler: expected the name of a scheduler, got {Text.Names(options.Keys)}");
    }

    /// <summary>Take the value of a parameter, or its default.</summary>
    private static object? Argument(ParameterInfo parameter, Dictionary<string, object?> values)
    {
        if (!values.TryGetValue(parameter.Name!, out var value))
        {
            return parameter.DefaultValue;
        }

        try
        {
            return value is null || parameter.ParameterType.IsInstanceOfType(value) ? value : Converted(parameter.ParameterType, value);
        }
        catch (ArgumentException error)
        {
            throw new ArgumentException($"scheduler: {parameter.Name}: {error.Message}", error);
        }
    }

    private static object Converted(Type type, object value) => (Nullable.GetUnderlyingType(type) ?? type) switch
    {
        var number when number == typeof(int) => StateFields.Whole(value),
        var number when number == typeof(double) => StateFields.Number(value),
        var flag when flag == typeof(bool) => StateFields.Typed<bool>(value),
        var text when text == typeof(string) => StateFields.Typed<string>(value),
        var group when group == typeof(PerGroup) && value is IEnumerable => PerGroup.FromDoubleArray([.. StateFields.Items(value).Select(StateFields.Number)]),
        var group when group == typeof(PerGroup) => PerGroup.FromDouble(StateFields.Number(value)),
        var numbers when numbers == typeof(IEnumerable<int>) => StateFields.Items(value).Select(StateFields.Whole).ToArray(),
        var functions when functions == typeof(IEnumerable<Func<int, double>>) => StateFields.Items(value).Select(StateFields.Typed<Func<int, double>>).ToArray(),
        _ => throw new ArgumentException($"expected {type.Name}, got {value.GetType().Name}"),
    };
}
