"""Faults of Adam and its kin: betas, eps, the correction of the bias, decay."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bridge.trace.evidence import Evidence
from bridge.trace.finding import Finding, finding
from bridge.trace.linear import close, fit
from bridge.trace.outcome import Divergence
from bridge.trace.record import Record
from bridge.trace.signatures.betas import first_moment, second_moment
from bridge.trace.signatures.moments import (
    UNCORRECTED,
    Moments,
    moments_of,
    options_of,
    variants,
)
from bridge.trace.signatures.sizes import size
from bridge.trace.signatures.update import adapts, options_differ, update_of, updated
from bridge.trace.signs import Numbers

EXACT = 1e-4
EXPLAINED = 0.02


def signatures(evidence: Evidence) -> Iterator[Finding]:
    """Look at moments and at updates that are made of them.

    Spec: R35.4
    """
    at, records = updated(evidence, [])
    if at is None or not adapts(evidence, records) or options_differ(evidence):
        return
    yield from (
        first_moment(evidence, records, at)
        or second_moment(evidence, records, at)
        or _formula(evidence, records, at)
        or _ratio(evidence, records, at)
    )


def _ratio(evidence: Evidence, records: list[Record], item: Divergence) -> list[Finding]:
    """Name updates of large parameters, whose values are not known, by their size."""
    a, b = (update_of(side, records) for side in (evidence.a, evidence.b))
    found = None if a is None or b is None else fit(b.change, a.change)
    if a is None or b is None or found is None:
        return []
    o, step = options_of(evidence.a), item.record.step + 1
    expected = (1 - o["b1"] ** step) / math.sqrt(1 - o["b2"] ** step)
    if found.residual < EXACT and close(found.weights[0], [expected], EXACT):
        return [
            finding(
                UNCORRECTED,
                "The port does not correct the moments for their start "
                f"at zero: its updates are {expected:.6g} times those of the reference.",
                item,
                0.95,
                ratio=found.weights[0],
            )
        ]
    return size(evidence, a, b, item)


def _formula(evidence: Evidence, records: list[Record], item: Divergence) -> list[Finding]:
    """Updates by another formula from the same moments."""
    pairs = [(moments_of(evidence.a, r), moments_of(evidence.b, r)) for r in records]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known:
        return []
    options = options_of(evidence.a)
    gap = _length([b.change - a.change for a, b in known])
    if not gap:
        return []
    found = [
        (
            _length([b.change - v for (_, b), v in zip(known, changes, strict=True)]) / gap,
            name,
            text,
        )
        for name, text, changes in variants([b for _, b in known], options)
    ]
    left, name, text = min(found)
    if left < EXPLAINED:
        return [finding(name, text, item, 1 - left, left=left)]
    return _other_eps([b for _, b in known], options, item) or _beside(known, options, item)


def _other_eps(known: list[Moments], o: Mapping[str, Any], item: Divergence) -> list[Finding]:
    """Solve for eps, and see whether it is one number."""
    with np.errstate(all="ignore"):
        values = np.concatenate(
            [
                np.ravel(
                    -o["lr"] * m.mean / (1 - o["b1"] ** m.step) / m.change
                    - np.sqrt(m.square / (1 - o["b2"] ** m.step))
                )
                for m in known
            ]
        )
    values = values[np.isfinite(values)]
    eps = float(np.median(values)) if values.size else 0.0
    spread = float(np.median(np.abs(values - eps))) if values.size else math.inf
    if eps <= 0 or spread > EXPLAINED * eps or close(eps, [o["eps"]], 0.05):
        return []
    return [
        finding(
            "eps value",
            f"eps of the port is {eps:.4g}, that of the reference {o['eps']:.4g}.",
            item,
            1 - spread / eps,
            reference=o["eps"],
            port=eps,
        )
    ]


def _beside(
    known: list[tuple[Moments, Moments]], o: Mapping[str, Any], item: Divergence
) -> list[Finding]:
    """See whether the updates differ by a share of the weights."""
    change = np.concatenate([np.ravel(b.change - a.change) for a, b in known])
    found = fit(change, np.concatenate([np.ravel(a.parameter) for a, _ in known]))
    if found is None or found.residual > EXPLAINED:
        return []
    decay = -found.weights[0] / o["lr"]
    return [
        finding(
            "weight decay",
            f"The updates differ by the weights times {decay:.4g} and the learning "
            "rate: another weight decay.",
            item,
            1 - found.residual,
            decay=decay,
        )
    ]


def _length(parts: list[Numbers]) -> float:
    """Return the norm of several tensors together."""
    return math.sqrt(sum(float(np.square(part).sum()) for part in parts))
