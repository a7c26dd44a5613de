namespace BridgeSharp.Checkpoint;

/// <summary>Values that a pickle makes; what does not fit throws an InvalidDataException.</summary>
/// <remarks>Spec: R26.10. Source: Lib/pickle.py</remarks>
internal sealed class PickleStack
{
    private readonly List<object?> values = [];
    private readonly Stack<int> marks = [];
    private readonly Dictionary<long, object?> memo = [];

    private int Floor => marks.TryPeek(out var mark) ? mark : 0;

    private object? Top => values.Count > Floor ? values[^1] : throw new InvalidDataException();

    /// <summary>Put a value on top.</summary>
    public void Push(object? value) => values.Add(value);

    /// <summary>Remember the place.</summary>
    public void Mark() => marks.Push(values.Count);

    /// <summary>Take values from the top, not beyond the last mark.</summary>
    public object?[] Pop(int count) => values.Count - Floor >= count ? Take(values.Count - count) : throw new InvalidDataException();

    /// <summary>Take the values since the last mark.</summary>
    public object?[] PopMark() => marks.TryPop(out var mark) ? Take(mark) : throw new InvalidDataException();

    /// <summary>Keep the value on top for later.</summary>
    public void Put(long index) => memo[index] = Top;

    /// <summary>Put a kept value on top.</summary>
    public void Get(long index) => Push(memo.TryGetValue(index, out var value) ? value : throw new InvalidDataException());

    /// <summary>Append to the list on top.</summary>
    public void Extend(object?[] items) => (Top as List<object?> ?? throw new InvalidDataException()).AddRange(items);

    /// <summary>Set items of the dict on top.</summary>
    public void Update(object?[] items)
    {
        if (Top is not OrderedDictionary<object, object?> target || items.Length % 2 != 0)
        {
            throw new InvalidDataException();
        }

        for (var i = 0; i < items.Length; i += 2)
        {
            target[items[i] is string or long ? items[i]! : throw new InvalidDataException()] = items[i + 1];
        }
    }

    /// <summary>Take the one value that is left.</summary>
    public object? End() => values.Count == 1 && marks.Count == 0 ? values[0] : throw new InvalidDataException();

    private object?[] Take(int start)
    {
        object?[] taken = [.. values.GetRange(start, values.Count - start)];
        values.RemoveRange(start, taken.Length);
        return taken;
    }
}
