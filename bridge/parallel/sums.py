"""Sums of numbers, the same in every Python and in C#."""

from collections.abc import Iterable


def in_order(values: Iterable[float]) -> float:
    """Add numbers one after the other; since Python 3.12 ``sum`` compensates its rounding."""
    total = 0.0
    for value in values:
        total += value
    return total
