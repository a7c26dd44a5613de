using System.Collections;
using System.Runtime.CompilerServices;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>One number for all parameter groups, or one per group: <c>0.1</c> or <c>[0.1, 0.2]</c>.</summary>
[CollectionBuilder(typeof(PerGroup), nameof(FromSpan))]
public sealed class PerGroup : IEnumerable<double>
{
    private readonly List<double> values;

    private PerGroup(IEnumerable<double> values, bool single)
    {
        this.values = [.. values];
        Single = single ? this.values[0] : null;
    }

    /// <summary>The one number, or null where there is one per group.</summary>
    internal double? Single { get; }

    /// <summary>Take one number for all groups.</summary>
    /// <param name="value">The number.</param>
    public static implicit operator PerGroup(double value) => FromDouble(value);

    /// <summary>Take one number per group.</summary>
    /// <param name="values">The numbers.</param>
    public static implicit operator PerGroup(double[] values) => FromDoubleArray(values);

    /// <summary>Take one number for all groups.</summary>
    /// <param name="value">The number.</param>
    /// <returns>It.</returns>
    public static PerGroup FromDouble(double value) => new([value], single: true);

    /// <summary>Take one number per group.</summary>
    /// <param name="values">The numbers.</param>
    /// <returns>Them.</returns>
    public static PerGroup FromDoubleArray(double[] values) => new(values, single: false);

    /// <summary>Take one number per group.</summary>
    /// <param name="values">The numbers.</param>
    /// <returns>Them.</returns>
    public static PerGroup FromSpan(ReadOnlySpan<double> values) => FromDoubleArray(values.ToArray());

    /// <inheritdoc/>
    public IEnumerator<double> GetEnumerator() => values.GetEnumerator();

    /// <inheritdoc/>
    IEnumerator IEnumerable.GetEnumerator() => GetEnumerator();

    /// <summary>List one number per group of an optimizer; null where their count is another.</summary>
    internal List<double>? For(optim.Optimizer optimizer)
    {
        var count = optimizer.ParamGroups.Count();
        return Single is { } value ? [.. Enumerable.Repeat(value, count)] : values.Count == count ? [.. values] : null;
    }

    /// <summary>List one number per group of an optimizer, as <c>_format_param</c> of PyTorch does.</summary>
    internal List<double> For(optim.Optimizer optimizer, string name, bool old)
    {
        var count = optimizer.ParamGroups.Count();
        return For(optimizer) ?? throw new ArgumentException(old
            ? $"expected {count} values for {name}, got {values.Count}"
            : $"{name} must have the same length as optimizer.param_groups. {name} has {values.Count} values, param_groups has {count}.");
    }
}
