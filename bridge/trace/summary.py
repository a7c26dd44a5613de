"""What a trace keeps of the values of a tensor, computed in one fixed order of operations."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bridge.trace.signs import BUCKETS, ROWS, WIDTH, Numbers, column_signs, places, row_signs

CHUNK = ROWS * WIDTH


@dataclass(frozen=True)
class Summary:
    """The norm, range, counts and projections of a tensor.

    ``projections`` has one number for each bucket: the sum of its values, each with a fixed random
    sign. It is None where a value, or the norm, is not finite.

    Spec: R30.2
    """

    norm: float
    minimum: float
    maximum: float
    nan: int
    infinite: int
    projections: tuple[float, ...] | None


def summarize(values: npt.NDArray[np.generic]) -> Summary:
    """Summarize real numbers: the same values give the same bits in both languages and all builds.

    Every operation is an addition, a multiplication or a square root of single float64 numbers, in
    an order that depends on the count of values only.

    Args:
        values: ``(N,)``, of any dtype that converts to float64.

    Spec: R30.2
    """
    if not values.size:
        return Summary(0.0, 0.0, 0.0, 0, 0, (0.0,) * BUCKETS)
    with np.errstate(all="ignore"):
        sums, squares, low, high = _columns(values)
        if not (math.isfinite(low) and math.isfinite(high)):
            return _not_finite(values)
        norm = math.sqrt(_fold(_padded(_buckets(squares), 32))[()])
    projections = tuple(_buckets(sums).tolist()) if math.isfinite(norm) else None
    return Summary(norm, low + 0.0, high + 0.0, 0, 0, projections)


def _not_finite(values: npt.NDArray[np.generic]) -> Summary:
    """Count what is not finite; there is nothing else to say."""
    nan, infinite = int(np.isnan(values).sum()), int(np.isinf(values).sum())
    norm = math.nan if nan else math.inf
    return Summary(norm, float(values.min()), float(values.max()), nan, infinite, None)


def _columns(values: npt.NDArray[np.generic]) -> tuple[Numbers, Numbers, float, float]:
    """Add up the columns of all chunks, the values with their signs and their squares.

    Returns:
        Both sums ``(WIDTH,)``, and the smallest and the largest value.
    """
    sums, squares, low, high = np.zeros(WIDTH), np.zeros(WIDTH), math.inf, -math.inf
    count = min(ROWS, 1 << (-(-values.size // WIDTH) - 1).bit_length())
    rows, powers = np.empty((count, WIDTH)), np.empty((count, WIDTH))
    for chunk, start in enumerate(range(0, values.size, CHUNK)):
        part = values[start : start + CHUNK]
        rows.reshape(-1)[: part.size] = part
        rows.reshape(-1)[part.size :] = 0.0
        ends = float(part.min()), float(part.max())
        if not all(map(math.isfinite, ends)):
            return sums, squares, *ends
        low, high = min(low, ends[0]), max(high, ends[1])
        np.multiply(rows, rows, out=powers)
        squares += _fold(powers)
        folded = _fold(rows, row_signs())
        folded *= column_signs(chunk)
        sums += folded
    return sums, squares, low, high


def _buckets(columns: Numbers) -> Numbers:
    """Add up the columns of each bucket, ``(BUCKETS,)``."""
    return _fold(_padded(columns[places()], 128))


def _padded(rows: Numbers, count: int) -> Numbers:
    """Copy rows and add rows of zeros."""
    padded = np.zeros((count, *rows.shape[1:]))
    padded[: len(rows)] = rows
    return padded


def _fold(rows: Numbers, signs: Numbers | None = None) -> Numbers:
    """Add the upper half of a power of two of rows to the lower half, until one row is left.

    Row k takes its sign when it is added, and carries on those of the rows added to it before.
    """
    half = len(rows)
    while half > 1:
        half //= 2
        upper = rows[half : 2 * half]
        if signs is not None:
            upper *= signs[half : 2 * half]
        rows[:half] += upper
    folded: Numbers = rows[0]
    return folded
