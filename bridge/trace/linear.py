"""Linear algebra on projections: which known tensors a tensor is a sum of."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from bridge.trace.record import Contents
from bridge.trace.signs import BUCKETS, Numbers
from bridge.trace.summary import summarize


@dataclass(frozen=True)
class Fit:
    """The weights of a sum, and which share of the target they leave over."""

    weights: tuple[float, ...]
    residual: float


def fit(target: Numbers, *basis: Numbers) -> Fit | None:
    """Write a vector as a sum of others by least squares; None where that is not unique.

    Spec: R35.5
    """
    size = float(np.linalg.norm(target))
    lengths = [float(np.linalg.norm(vector)) for vector in basis]
    if not size or not all(lengths):
        return None
    columns = np.stack([v / length for v, length in zip(basis, lengths, strict=True)], axis=1)
    weights, _, rank, singular = np.linalg.lstsq(columns, target, rcond=None)
    if rank < len(basis) or singular[-1] < 1e-4 * singular[0]:
        return None
    left = float(np.linalg.norm(target - columns @ weights)) / size
    return Fit(tuple((weights / lengths).tolist()), left)


def vector(*contents: Contents | None) -> Numbers | None:
    """Join the projections of tensors; None where one is missing."""
    parts = []
    for one in contents:
        if one is None or one.summary.projections is None:
            return None
        parts.append(np.array(one.summary.projections))
    return np.concatenate(parts) if parts else None


def project(values: Numbers) -> Numbers:
    """Project a tensor as a trace does."""
    found = summarize(np.ascontiguousarray(values, dtype=np.float64).ravel()).projections
    return np.array(found if found is not None else (np.nan,) * BUCKETS)


def unprojected(contents: Contents) -> Numbers | None:
    """Read all values of a tensor of up to 31 off its projections; None of a larger one.

    Spec: R35.5
    """
    size = prod(contents.shape)
    if not 0 < size <= BUCKETS or contents.summary.projections is None:
        return None
    places, signs = _single(size)
    values: Numbers = np.array(contents.summary.projections)[places] * signs
    return values.reshape(contents.shape)


@lru_cache(maxsize=BUCKETS)
def _single(size: int) -> tuple[Numbers, Numbers]:
    """Find the projection and the sign of each value of a small tensor."""
    units = np.stack([project(row) for row in np.eye(size)])
    places = np.abs(units).argmax(axis=1)
    return places, units[np.arange(size), places]


def close(value: float, others: Sequence[float], within: float = 2e-3) -> bool:
    """Tell whether a number is nearly one of others."""
    return any(abs(value - other) <= within * abs(other) for other in others)
