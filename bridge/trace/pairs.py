"""Compares one pair of records."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from bridge.trace.distance import (
    Distance,
    Rule,
    estimate,
    measure,
    same_float32,
    within_float32,
)
from bridge.trace.outcome import Divergence, Fault
from bridge.trace.reader import Trace
from bridge.trace.record import Contents, Record


class Envelope(Protocol):
    """Knows how large differences can become by rounding alone."""

    def holds(self, record: Record, distance: Distance) -> bool:
        """Tell whether a difference of a tensor is inside."""


@dataclass(frozen=True)
class Pairs:
    """Compares the pairs of two traces, one by one.

    Attributes:
        a: the reference.
        b: the port.
        rule: by which values are identical.
        envelope: what tells rounding from a fault, or None.
        moved: the ids of records that come in another order.

    Spec: R30.7, R30.9
    """

    a: Trace
    b: Trace
    rule: Rule
    envelope: Envelope | None
    moved: AbstractSet[int]

    def divergence(self, one: Record | None, other: Record | None) -> Divergence | None:
        """Say how a pair differs, or None where it is identical; configuration may differ."""
        side = one or other
        if side is None or side.kind == "configuration":
            return None
        if one is None or other is None:
            failed = side.kind == "failure"
            fault: Fault = "failure" if failed else "extra" if one is None else "missing"
            return Divergence(fault, one, other)
        if one.tensor is not None and other.tensor is not None:
            found = self._tensors(one, other, one.tensor, other.tensor)
        else:
            # A tensor on one side only: a gradient that is None on the other.
            same = one.tensor is other.tensor and one.value == other.value
            found = None if same else Divergence("value", one, other)
        if found is None and id(one) in self.moved:
            return Divergence("reordered", one, other)
        return found

    def _tensors(self, one: Record, other: Record, a: Contents, b: Contents) -> Divergence | None:
        """Compare two tensors."""
        if a.dtype != b.dtype:
            return Divergence("dtype", one, other)
        if a.shape != b.shape:
            return Divergence("shape", one, other)
        if any(side.summary.nan or side.summary.infinite for side in (a, b)):
            return Divergence("not finite", one, other)
        if a.digest == b.digest:
            return None
        x, y = self.a.values(one), self.b.values(other)
        distance: Distance | None
        if x is not None and y is not None:
            same, distance = same_float32(x, y), measure(a, b, x, y)
        else:
            same, distance = within_float32(a, b), estimate(a, b)
        if self.rule == "float32" and same:
            return None
        noise = (
            self.envelope is not None
            and distance is not None
            and self.envelope.holds(one, distance)
        )
        return Divergence("value", one, other, distance, noise=noise)


def same_bits(one: Record | None, other: Record | None) -> bool:
    """Tell whether a pair of tensors, or of values, has the same bits."""
    tensors = [side.tensor for side in (one, other) if side is not None and side.tensor is not None]
    return len({tensor.digest for tensor in tensors}) < 2  # noqa: PLR2004 - one digest, or none
