namespace BridgeSharp.Optim;

/// <summary>Arithmetic of Python's numbers where C#'s is another.</summary>
internal static class PythonMath
{
    /// <summary>Divide; a divisor of 0 is refused.</summary>
    public static double Divide(double dividend, double divisor)
        => divisor != 0 ? dividend / divisor : throw new DivideByZeroException("division by zero");

    /// <summary>Divide whole numbers, rounded down.</summary>
    public static int FloorDivide(int dividend, int divisor) => (int)Math.Floor(Divide(dividend, divisor));

    /// <summary>Raise to a power; what is too large is refused.</summary>
    public static double Power(double number, double exponent)
    {
        if (number == 0 && exponent < 0)
        {
            throw new DivideByZeroException("0.0 cannot be raised to a negative power");
        }

        var power = Math.Pow(number, exponent);
        return !double.IsInfinity(power) || double.IsInfinity(number) || double.IsInfinity(exponent)
            ? power
            : throw new OverflowException("Numerical result out of range");
    }

    /// <summary>Find where a number goes behind its equals, as <c>bisect_right</c> does; the list need not be sorted.</summary>
    public static int BisectRight(IReadOnlyList<int> sorted, int number)
    {
        var (low, high) = (0, sorted.Count);
        while (low < high)
        {
            var middle = (low + high) / 2;
            (low, high) = number < sorted[middle] ? (low, middle) : (middle + 1, high);
        }

        return low;
    }
}
