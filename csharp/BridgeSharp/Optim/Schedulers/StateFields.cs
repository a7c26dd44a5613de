using System.Collections;
using System.Globalization;

namespace BridgeSharp.Optim;

/// <summary>Names the fields of a state one by one, so that one method says what is written and what is read.</summary>
internal abstract class StateFields
{
    /// <summary>Whether fields are read.</summary>
    public abstract bool Reads { get; }

    /// <summary>Name a field; null where it has no value yet.</summary>
    public abstract void Field<T>(string name, ref T value, Func<T, object?> write, Func<object?, T> read);

    /// <summary>Name what has one value only, and is not read.</summary>
    public void Constant(string name, object? value, bool when = true)
    {
        if (when)
        {
            Field(name, ref value, written => written, _ => value);
        }
    }

    /// <summary>Name a whole number.</summary>
    public void Field(string name, ref int value) => Field(name, ref value, number => (long)number, Whole);

    /// <summary>Name a number.</summary>
    public void Field(string name, ref double value) => Field(name, ref value, number => number, Number);

    /// <summary>Name a number that is mostly whole, and is written without a fraction then.</summary>
    public void Count(string name, ref double value)
        => Field(name, ref value, number => number == Math.Floor(number) ? (object)(long)number : number, Number);

    /// <summary>Name a switch.</summary>
    public void Field(string name, ref bool value) => Field(name, ref value, flag => flag, Typed<bool>);

    /// <summary>Name a text.</summary>
    public void Field(string name, ref string value) => Field(name, ref value, text => text, Typed<string>);

    /// <summary>Name numbers.</summary>
    public void Field(string name, ref List<double> value)
        => Field(name, ref value, numbers => numbers.ConvertAll(number => (object?)number), given => [.. Items(given).Select(Number)]);

    /// <summary>Name whole numbers.</summary>
    public void Field(string name, ref List<int> value)
        => Field(name, ref value, numbers => numbers.ConvertAll(number => (object?)(long)number), given => [.. Items(given).Select(Whole)]);

    /// <summary>Name functions, which are None in a state; that of a callable object of Python is refused.</summary>
    public void Functions(string name, int count)
    {
        var none = Enumerable.Repeat<object?>(null, count).ToList();
        Field(name, ref none, given => given, given => Items(given).All(item => item is null) ? none : throw Refused("None for a function", given));
    }

    /// <summary>Name a function.</summary>
    public void Function(string name)
    {
        object? none = null;
        Field(name, ref none, given => given, given => given is null ? none : throw Refused("None for a function", given));
    }

    /// <summary>Name the states of schedulers.</summary>
    public abstract void Nested(string name, IReadOnlyList<Scheduler> parts);

    /// <summary>Read a number.</summary>
    public static double Number(object? given) => given is double or float or decimal || Integral(given)
        ? Convert.ToDouble(given, CultureInfo.InvariantCulture)
        : throw Refused("a number", given);

    /// <summary>Read a whole number; Python may have written it with <c>.0</c>.</summary>
    public static int Whole(object? given)
    {
        var number = Number(given);
        return number == Math.Floor(number) && Math.Abs(number) <= int.MaxValue ? (int)number : throw Refused("a whole number", given);
    }

    /// <summary>Read a value of one type.</summary>
    public static T Typed<T>(object? given)
        => given is T value ? value : throw Refused(typeof(T) == typeof(bool) ? "true or false" : "a text", given);

    /// <summary>Read a list.</summary>
    public static IEnumerable<object?> Items(object? given)
        => given is IEnumerable items and not (string or IDictionary) ? items.Cast<object?>() : throw Refused("a list", given);

    /// <summary>Read a dictionary; its keys become strings.</summary>
    public static Dictionary<string, object?> Entries(object? given) => given switch
    {
        IReadOnlyDictionary<string, object?> entries => new(entries),
        IDictionary entries => entries.Keys.Cast<object>().ToDictionary(key => Convert.ToString(key, CultureInfo.InvariantCulture)!, key => entries[key]),
        _ => throw Refused("a dictionary", given),
    };

    private static bool Integral(object? given) => given is long or int or short or byte or sbyte or ushort or uint or ulong;

    private static ArgumentException Refused(string expected, object? given)
        => new($"expected {expected}, got {Convert.ToString(given ?? "None", CultureInfo.InvariantCulture)}");
}

/// <summary>Writes fields into a tree.</summary>
internal sealed class StateWriter : StateFields
{
    /// <summary>The tree.</summary>
    public Dictionary<string, object?> State { get; } = [];

    /// <inheritdoc/>
    public override bool Reads => false;

    /// <inheritdoc/>
    public override void Field<T>(string name, ref T value, Func<T, object?> write, Func<object?, T> read) => State[name] = write(value);

    /// <inheritdoc/>
    public override void Nested(string name, IReadOnlyList<Scheduler> parts)
        => State[name] = parts.Select(part => (object?)part.state_dict()).ToList();
}

/// <summary>Reads fields out of a tree, or only checks them.</summary>
internal sealed class StateReader(string owner, IReadOnlyDictionary<string, object?> state, bool apply) : StateFields
{
    /// <inheritdoc/>
    public override bool Reads => true;

    /// <inheritdoc/>
    public override void Nested(string name, IReadOnlyList<Scheduler> parts)
    {
        List<Dictionary<string, object?>> states = [];
        Field(name, ref states, _ => null, given => states = [.. Items(given).Select(Entries)]);
        if (states.Count != parts.Count && state.ContainsKey(name))
        {
            throw new ArgumentException($"load_state_dict: {name} of {owner}: expected {parts.Count} states, got {states.Count}");
        }

        foreach (var (part, own) in parts.Zip(states))
        {
            part.Exchange(new StateReader(part.GetType().Name, own, apply));
        }
    }

    /// <inheritdoc/>
    public override void Field<T>(string name, ref T value, Func<T, object?> write, Func<object?, T> read)
    {
        if (!state.TryGetValue(name, out var given))
        {
            return;
        }

        try
        {
            var taken = read(given);
            value = apply ? taken : value;
        }
        catch (ArgumentException error)
        {
            throw new ArgumentException($"load_state_dict: {name} of {owner}: {error.Message}", error);
        }
    }
}
