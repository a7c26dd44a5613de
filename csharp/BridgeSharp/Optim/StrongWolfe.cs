using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>A line search by the strong Wolfe conditions.</summary>
/// <remarks>Source: <c>_strong_wolfe</c> in torch/optim/lbfgs.py</remarks>
internal sealed class StrongWolfe(
    Func<Real, (double Loss, Tensor Gradient)> evaluate, Tensor direction, StrongWolfe.Point start, long limit)
{
    private const double Decrease = 1e-4;
    private const double Curvature = 0.9;
    private const double Tolerance = 1e-9;
    private readonly Real norm = direction.abs().max();
    private long iterations;

    /// <summary>How often the closure was called.</summary>
    public long Evaluations { get; private set; }

    /// <summary>Find a point that is low and flat enough, from a first length on.</summary>
    public Point Find(Real length)
    {
        var (bracket, done) = Bracket(length);
        var low = bracket[0].Loss <= bracket[^1].Loss ? 0 : 1;
        var stuck = false;
        while (!done && iterations < limit && !((bracket[1].Length - bracket[0].Length).Abs() * norm < Tolerance))
        {
            var next = Inside(bracket, ref stuck);
            iterations++;
            done = Narrow(bracket, Evaluate(next), ref low);
        }

        return bracket[low];
    }

    /// <summary>Find two points with a good one between them, or a good one.</summary>
    private (Point[] Bracket, bool Done) Bracket(Real length)
    {
        var (previous, current) = (start, Evaluate(length));
        while (iterations < limit)
        {
            if (IsHigh(current) || (iterations > 1 && current.Loss >= previous.Loss))
            {
                return ([previous, current], false);
            }

            if (IsFlat(current))
            {
                return ([current], true);
            }

            if (current.Slope >= 0)
            {
                return ([previous, current], false);
            }

            var shortest = current.Length + (0.01 * (current.Length - previous.Length));
            var next = Interpolate(previous, current, shortest, current.Length * 10);
            (previous, current) = (current, Evaluate(next));
            iterations++;
        }

        return ([start, current], false);
    }

    /// <summary>Choose a length inside the bracket that is not too near to an end.</summary>
    private static Real Inside(Point[] bracket, ref bool stuck)
    {
        var (first, second) = (bracket[0].Length, bracket[1].Length);
        var (left, right) = first <= second ? (first, second) : (second, first);
        var next = Interpolate(bracket[0], bracket[1], left, right);
        (left, right) = (Real.Min(first, second), Real.Max(first, second));
        var margin = 0.1 * (right - left);
        if (!(Real.Min(right - next, next - left) < margin))
        {
            stuck = false;
            return next;
        }

        if (!stuck && !(next >= right) && !(next <= left))
        {
            stuck = true;
            return next;
        }

        stuck = false;
        return (next - right).Abs() < (next - left).Abs() ? right - margin : left + margin;
    }

    /// <summary>Put a point in the place of an end of the bracket.</summary>
    /// <returns>Whether it is good enough.</returns>
    private bool Narrow(Point[] bracket, Point point, ref int low)
    {
        if (IsHigh(point) || point.Loss >= bracket[low].Loss)
        {
            bracket[1 - low] = point;
            low = bracket[0].Loss <= bracket[1].Loss ? 0 : 1;
            return false;
        }

        var done = IsFlat(point);
        if (!done && point.Slope * (bracket[1 - low].Length - bracket[low].Length) >= 0)
        {
            bracket[1 - low] = bracket[low];
        }

        bracket[low] = point;
        return done;
    }

    private bool IsHigh(Point point) => point.Loss > start.Loss + (Decrease * point.Length * start.Slope);

    private bool IsFlat(Point point) => point.Slope.Abs() <= -Curvature * start.Slope;

    private Point Evaluate(Real length)
    {
        var (loss, gradient) = evaluate(length);
        Evaluations++;
        return new(length, loss, gradient, gradient.dot(direction));
    }

    /// <summary>Find the lowest place of the cubic through two points, within bounds.</summary>
    private static Real Interpolate(Point first, Point second, Real smallest, Real largest)
    {
        var ((x1, f1, _, g1), (x2, f2, _, g2)) = (first, second);
        var d1 = g1 + g2 - (3 * (f1 - f2) / (x1 - x2));
        var square = (d1 * d1) - (g1 * g2);
        if (!(square >= 0))
        {
            return (smallest + largest) / 2;
        }

        var d2 = square.Sqrt();
        var lowest = x1 <= x2
            ? x2 - ((x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + (2 * d2))))
            : x1 - ((x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + (2 * d2))));
        return Real.Min(Real.Max(lowest, smallest), largest);
    }

    /// <summary>A place on the line.</summary>
    internal sealed record Point(Real Length, double Loss, Tensor Gradient, Real Slope);
}
