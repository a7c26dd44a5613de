using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>A number that Python has as a float, or as a tensor of one value, whose arithmetic is that of its dtype.</summary>
/// <remarks>The casts keep plain numbers plain: C# would make tensors of them.</remarks>
internal readonly record struct Real(Tensor? Tensor, double Number)
{
    /// <summary>The value.</summary>
    public double Value => Tensor is null ? Number : Tensor.ToDouble();

    /// <summary>The tensor, or the number.</summary>
    public object Boxed => Tensor is null ? (object)Number : Tensor;

    /// <summary>Read what a state holds.</summary>
    public static Real Of(object? value) => value switch
    {
        Tensor tensor => tensor,
        null => 0,
        _ => Convert.ToDouble(value, null),
    };

    public static implicit operator Real(double number) => new(null, number);

    public static implicit operator Real(Tensor tensor) => new(tensor, 0);

    public static Real operator +(Real left, Real right) => (left.Tensor, right.Tensor) switch
    {
        (null, null) => (Real)(left.Number + right.Number),
        (null, { } tensor) => left.Number + tensor,
        ({ } tensor, null) => tensor + right.Number,
        ({ } one, { } other) => one + other,
    };

    public static Real operator -(Real left, Real right) => (left.Tensor, right.Tensor) switch
    {
        (null, null) => (Real)(left.Number - right.Number),
        (null, { } tensor) => left.Number - tensor,
        ({ } tensor, null) => tensor - right.Number,
        ({ } one, { } other) => one - other,
    };

    public static Real operator *(Real left, Real right) => (left.Tensor, right.Tensor) switch
    {
        (null, null) => (Real)(left.Number * right.Number),
        (null, { } tensor) => left.Number * tensor,
        ({ } tensor, null) => tensor * right.Number,
        ({ } one, { } other) => one * other,
    };

    public static Real operator /(Real left, Real right) => (left.Tensor, right.Tensor) switch
    {
        (null, null) => (Real)(left.Number / right.Number),
        (null, { } tensor) => left.Number / tensor,
        ({ } tensor, null) => tensor / right.Number,
        ({ } one, { } other) => one / other,
    };

    public static bool operator <(Real left, Real right) => (left.Tensor, right.Tensor) switch
    {
        (null, null) => left.Number < right.Number,
        (null, { } tensor) => tensor.gt(left.Number).item<bool>(),
        ({ } tensor, null) => tensor.lt(right.Number).item<bool>(),
        ({ } one, { } other) => one.lt(other).item<bool>(),
    };

    public static bool operator <=(Real left, Real right) => (left.Tensor, right.Tensor) switch
    {
        (null, null) => left.Number <= right.Number,
        (null, { } tensor) => tensor.ge(left.Number).item<bool>(),
        ({ } tensor, null) => tensor.le(right.Number).item<bool>(),
        ({ } one, { } other) => one.le(other).item<bool>(),
    };

    public static bool operator >(Real left, Real right) => right < left;

    public static bool operator >=(Real left, Real right) => right <= left;

    /// <summary>Take the first of the smallest, as Python does.</summary>
    public static Real Min(Real first, Real second) => second < first ? second : first;

    /// <summary>Take the first of the largest, as Python does.</summary>
    public static Real Max(Real first, Real second) => second > first ? second : first;

    /// <summary>Multiply a tensor of any shape.</summary>
    public Tensor Times(Tensor tensor) => Tensor is null ? tensor * Number : tensor * Tensor;

    /// <summary>Take the absolute value.</summary>
    public Real Abs() => Tensor is null ? (Real)Math.Abs(Number) : Tensor.abs();

    /// <summary>Take the square root.</summary>
    public Real Sqrt() => Tensor is null ? (Real)Math.Sqrt(Number) : Tensor.sqrt();
}
