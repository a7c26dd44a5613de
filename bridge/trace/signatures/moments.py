"""What Adam's updates are made of, and the formulas that they may follow."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.trace.evidence import Side
from bridge.trace.record import Record
from bridge.trace.signs import Numbers

UNCORRECTED = "bias correction missing"
Divisor = Callable[[Numbers, float], Any]
"""Takes the second moment and its correction."""


@dataclass(frozen=True)
class Moments:
    """All values of one small parameter's update on one side."""

    change: Numbers
    parameter: Numbers
    mean: Numbers
    square: Numbers
    mean_before: Numbers
    square_before: Numbers
    step: int


def moments_of(side: Side, record: Record) -> Moments | None:
    """Take all values of an update, of a tensor that is whole or small."""
    mean = side.beside(record, "optimizer state", "exp_avg")
    square = side.beside(record, "optimizer state", "exp_avg_sq")
    count = side.beside(record, "optimizer state", "step")
    found = [side.full(one) for one in (side.like(record), side.before(record), mean, square)]
    after, start, first, second = found
    if after is None or start is None or first is None or second is None:
        return None
    earlier = [None if own is None else side.full(last(side, own)) for own in (mean, square)]
    old, held = (np.zeros_like(start) if values is None else values for values in earlier)
    step = int(count.value) if count is not None else record.step + 1
    return Moments(after - start, start, first, second, old, held, step)


def last(side: Side, own: Record) -> Record | None:
    """Return what a part of the state was before."""
    earlier = side.history(own)
    return earlier[-1] if earlier else None


def options_of(side: Side) -> Mapping[str, Any]:
    """Take the options of Adam."""
    b1, b2 = side.option("betas") or [0.9, 0.999]
    return {"lr": side.option("lr", 1e-3), "eps": side.option("eps", 1e-8), "b1": b1, "b2": b2}


def variants(
    known: list[Moments], o: Mapping[str, Any]
) -> Iterator[tuple[str, str, list[Numbers]]]:
    """Compute the updates of each formula that Adam is mistaken for."""
    eps = o["eps"]
    for name, text, divisor in (
        ("eps placement", "adds eps under the root", lambda v, d: np.sqrt(v / d + eps)),
        ("eps placement", "adds eps before the second moment is corrected",
         lambda v, d: (np.sqrt(v) + eps) / math.sqrt(d)),
        ("eps placement", "adds eps under the root of the uncorrected second moment",
         lambda v, d: np.sqrt(v + eps) / math.sqrt(d)),
        (UNCORRECTED, "does not correct the second moment", lambda v, _: np.sqrt(v) + eps),
        ("root missing", "divides by the second moment, not by its root", lambda v, d: v / d + eps),
    ):  # fmt: skip
        yield name, f"The port {text}.", _updates(known, o, divisor, corrected=True)
    for text, divisor in (
        ("either moment", lambda v, _: np.sqrt(v) + eps),
        ("the first moment", lambda v, d: np.sqrt(v / d) + eps),
    ):
        changes = _updates(known, o, divisor, corrected=False)
        yield UNCORRECTED, f"The port does not correct {text} for its start at zero.", changes


def _updates(
    known: list[Moments], o: Mapping[str, Any], divisor: Divisor, *, corrected: bool
) -> list[Numbers]:
    """Divide the first moment, corrected or not."""
    changes = []
    for one in known:
        first = 1 - o["b1"] ** one.step if corrected else 1.0
        second = divisor(one.square, 1 - o["b2"] ** one.step)
        changes.append(np.asarray(-o["lr"] * one.mean / first / second))
    return changes
