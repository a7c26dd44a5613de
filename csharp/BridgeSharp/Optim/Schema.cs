using System.Collections;
using System.Runtime.CompilerServices;
using BridgeSharp.Parallel;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>What an optimizer can be told: names and defaults, and the keys of a group in each version of PyTorch.</summary>
/// <remarks>Options that the later version alone has are refused for the earlier one.</remarks>
internal sealed class Schema
{
    private readonly (string Name, object? Default)[] options;
    private readonly Action<Options> check;
    private readonly Dictionary<string, string[]> keys;

    /// <summary>Describe an optimizer.</summary>
    /// <param name="name">Its class in PyTorch.</param>
    /// <param name="keys">The keys of a group in PyTorch 2.10, in order.</param>
    /// <param name="oldKeys">Those in PyTorch 1.13.</param>
    /// <param name="check">Refuses values out of range, with PyTorch's texts.</param>
    /// <param name="options">Names and defaults, in the order of PyTorch's arguments.</param>
    public Schema(string name, string keys, string oldKeys, Action<Options> check, params (string Name, object? Default)[] options)
    {
        Name = name;
        this.check = check;
        this.options = options;
        this.keys = new() { ["2.10"] = keys.Split(' '), ["1.13"] = oldKeys.Split(' ') };
    }

    /// <summary>The class in PyTorch.</summary>
    public string Name { get; }

    /// <summary>Keys that nobody chooses, with their values.</summary>
    public Dictionary<string, object> Fixed { get; } = [];

    /// <summary>List the keys of a group.</summary>
    public IReadOnlyList<string> Keys(string reference) => keys.TryGetValue(reference, out var found)
        ? found
        : throw new ArgumentException($"{Name}: expected reference 2.10 or 1.13, got {reference}");

    /// <summary>List the options that a version has.</summary>
    public IReadOnlyList<string> Known(string reference)
        => [.. options.Select(option => option.Name).Where(Keys(reference).Contains)];

    /// <summary>Join what is given with the defaults, in the order of the keys.</summary>
    public Options Complete(IReadOnlyDictionary<string, object?> given, string reference)
    {
        var known = Keys(reference);
        foreach (var (option, usual) in options)
        {
            if (!known.Contains(option) && given.TryGetValue(option, out var value) && !Equals(Read(option, value), usual))
            {
                throw new ArgumentException($"{Name}: expected {option} with reference 2.10 alone, got it with {reference}");
            }
        }

        var result = new Options();
        foreach (var key in known)
        {
            result[key] = given.TryGetValue(key, out var value) ? Read(key, value) : Default(key, reference);
        }

        check(result);
        return result;
    }

    /// <summary>Take a value as the type of its default; other keys stay as they are.</summary>
    public object? Read(string key, object? value)
    {
        var usual = options.FirstOrDefault(option => option.Name == key).Default;
        try
        {
            return usual switch
            {
                double => Convert.ToDouble(value, null),
                long => Convert.ToInt64(value, null),
                bool => Convert.ToBoolean(value, null),
                (double, double) => Pair(value),
                _ => value,
            };
        }
        catch (Exception error) when (error is FormatException or InvalidCastException or OverflowException)
        {
            var kind = usual switch { bool => "a boolean", (double, double) => "two numbers", _ => "a number" };
            throw new ArgumentException($"optimizer: expected {key} as {kind}, got {(value is Tensor ? "a tensor" : value)}", error);
        }
    }

    /// <summary>Give the value of a key that nobody set.</summary>
    public object? Default(string key, string reference)
    {
        if (Fixed.TryGetValue(key, out var value))
        {
            return value;
        }

        var own = options.FirstOrDefault(option => option.Name == key).Default;
        return own is null && (key is "capturable" or "differentiable" || (key == "fused" && reference == "1.13")) ? false : own;
    }

    /// <summary>Tell whether PyTorch gives a group that lacks a key its default.</summary>
    public bool IsOptional(string key) => options.FirstOrDefault(option => option.Name == key).Default is null or bool
        || (Name == "RMSprop" && key == "momentum");

    private static (double First, double Second) Pair(object? value) => value switch
    {
        (double first, double second) => (first, second),
        ITuple { Length: 2 } pair => (Convert.ToDouble(pair[0], null), Convert.ToDouble(pair[1], null)),
        IEnumerable items when items.Cast<object>().ToList() is [var first, var second]
            => (Convert.ToDouble(first, null), Convert.ToDouble(second, null)),
        _ => throw new InvalidCastException(),
    };
}

/// <summary>Options by PyTorch's names, in order.</summary>
internal sealed class Options : OrderedDictionary<string, object?>
{
    /// <summary>Collect arguments.</summary>
    public static Options Of(params ReadOnlySpan<(string Name, object? Value)> given)
    {
        var result = new Options();
        foreach (var (name, value) in given)
        {
            result.Add(name, value);
        }

        return result;
    }

    /// <summary>Refuse a number below zero, or NaN.</summary>
    public void NotNegative(string option, string title)
    {
        if (!((double)this[option]! >= 0))
        {
            Refuse(option, title);
        }
    }

    /// <summary>Refuse a number with PyTorch's text.</summary>
    public void Refuse(string option, string title)
        => throw new ArgumentException($"Invalid {title}: {Text.Number((double)this[option]!)}");

    /// <summary>Refuse betas outside of [0, 1).</summary>
    public void Betas()
    {
        var (first, second) = ((double, double))this["betas"]!;
        foreach (var (index, beta) in new[] { first, second }.Index())
        {
            if (!(beta is >= 0 and < 1))
            {
                throw new ArgumentException($"Invalid beta parameter at index {index}: {Text.Number(beta)}");
            }
        }
    }

    /// <summary>Refuse what all variants of Adam refuse.</summary>
    public void Adam()
    {
        NotNegative("lr", "learning rate");
        NotNegative("eps", "epsilon value");
        Betas();
        NotNegative("weight_decay", "weight_decay value");
    }
}
