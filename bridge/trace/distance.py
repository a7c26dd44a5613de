"""How far apart two recorded tensors are, from their projections or from the tensors themselves."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from bridge.trace.record import Contents
from bridge.trace.signs import BUCKETS, Numbers
from bridge.trace.summary import CHUNK

Rule = Literal["bitwise", "float32"]
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52,
           "complex64": 2.0**-23, "complex128": 2.0**-52}  # fmt: skip
FLOOR, SHARE, MARGIN = 1024, 64, 8
LARGEST = 2.0**127
LOW, HIGH = 0.80, 1.33
"""The roots of 31 over the quantiles 0.975 and 0.025 of chi square with 31 degrees of freedom."""


@dataclass(frozen=True)
class Distance:
    """The Euclidean norm of the difference of two tensors, and what it is relative to.

    Attributes:
        norm: the norm of the difference; from projections an estimate.
        low: with 95 % confidence the norm is not below it.
        high: nor above it; where the estimate drowns in rounding, the rounding.
        relative: ``norm`` by the larger norm of the two.
        ulp: the root mean square of the difference, in units in the last place of the dtype at the
            root mean square of the values.
        exact: computed from the tensors.

    Spec: R30.7
    """

    norm: float
    low: float
    high: float
    relative: float
    ulp: float
    exact: bool


def estimate(a: Contents, b: Contents) -> Distance | None:
    """Estimate a distance from projections; None where a side is not finite.

    The square of the norm of the difference has the sum of the squares of the differences of the
    projections as its unbiased estimate: each projection adds up its own share of the values with
    random signs, so that in the mean all products of two values cancel. With up to 31 values each
    projection is one of them, and the sum is exact.

    Spec: R30.7
    """
    differences = _differences(a, b)
    if differences is None:
        return None
    size = math.prod(a.shape)
    norm = math.sqrt(sum(d * d for d in differences))
    exact = size <= BUCKETS
    low, high = (norm, norm) if exact else (LOW * norm, max(HIGH * norm, _rounding(a, b)))
    return _distance(a, b, norm, low, high, exact=exact)


def measure(
    a: Contents, b: Contents, x: npt.NDArray[np.generic], y: npt.NDArray[np.generic]
) -> Distance:
    """Compute a distance from the tensors themselves.

    Spec: R30.7
    """
    difference = x.astype(np.float64).ravel() - y.astype(np.float64).ravel()
    norm = math.sqrt(float(np.square(difference).sum()))
    return _distance(a, b, norm, norm, norm, exact=True)


def within_float32(a: Contents, b: Contents) -> bool:
    """Tell whether rule ``float32`` holds, as far as projections tell.

    It holds where no projection differs by more than ``8 * sqrt(n) * ulp32 / 64`` and rounding,
    ``n`` being its count of values and ``ulp32`` the spacing of float32 numbers at the root mean
    square of the tensor, or at a 1024th of its largest value. Tensors within the rule value by
    value pass; one value alone must be off by that much to fail.

    Spec: R30.7
    """
    differences = _differences(a, b)
    if differences is None or not a.dtype.startswith("float"):
        return False
    size = math.prod(a.shape)
    count = -(-size // BUCKETS)
    largest = max(abs(v) for c in (a, b) for v in (c.summary.minimum, c.summary.maximum))
    place = max(_norm(a, b) / math.sqrt(size), largest / FLOOR)
    limit = MARGIN * math.sqrt(count) * _ulp32(place) / SHARE + _rounding(a, b)
    return all(abs(d) < limit for d in differences)


def same_float32(x: npt.NDArray[np.generic], y: npt.NDArray[np.generic]) -> bool:
    """Tell whether rule ``float32`` holds for every value.

    Spec: R13.2
    """
    if not np.issubdtype(x.dtype, np.floating):
        return bool(np.array_equal(x, y))
    a, b = x.astype(np.float64).ravel(), y.astype(np.float64).ravel()
    size: Numbers = np.maximum(np.abs(a), np.abs(b))
    places = np.clip(size, size.max(initial=0.0) / FLOOR, LARGEST)
    spacing = np.spacing(places.astype(np.float32)).astype(np.float64)
    return bool(np.all(np.abs(a - b) < spacing / SHARE))


def _differences(a: Contents, b: Contents) -> list[float] | None:
    """Subtract the projections."""
    one, other = a.summary.projections, b.summary.projections
    if one is None or other is None:
        return None
    return [x - y for x, y in zip(one, other, strict=True)]


def _distance(  # noqa: PLR0913 - the numbers of a distance
    a: Contents, b: Contents, norm: float, low: float, high: float, *, exact: bool
) -> Distance:
    """Relate a norm to the tensors."""
    whole = _norm(a, b)
    relative = norm / whole if whole else (math.inf if norm else 0.0)
    return Distance(norm, low, high, relative, _ulps(a, norm, whole), exact)


def _ulps(a: Contents, norm: float, whole: float) -> float:
    """Express a difference in units in the last place at the root mean square of the values."""
    if not norm:
        return 0.0
    count = math.sqrt(max(math.prod(a.shape), 1))
    if a.dtype not in EPSILON or not whole:
        return math.inf if a.dtype in EPSILON else norm / count
    return norm / count / (EPSILON[a.dtype] * 2.0 ** (math.frexp(whole / count)[1] - 1))


def _rounding(a: Contents, b: Contents) -> float:
    """Bound what the rounding of the sums contributes to the difference of projections."""
    chunks = -(-math.prod(a.shape) // CHUNK)
    return float(EPSILON["float64"] * _norm(a, b) * math.sqrt(12 + chunks / 2))


def _norm(a: Contents, b: Contents) -> float:
    """Return the larger norm."""
    return max(a.summary.norm, b.summary.norm)


def _ulp32(place: float) -> float:
    """Return the spacing of float32 numbers at a place, at most at the end of their range."""
    return float(np.spacing(np.float32(min(place, LARGEST))))
