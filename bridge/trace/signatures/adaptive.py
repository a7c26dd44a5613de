"""Faults of Adam and its kin: betas, eps, the correction of the bias, decay."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bridge.trace.evidence import Evidence, Side
from bridge.trace.finding import Finding, finding
from bridge.trace.linear import Fit, close, fit, vector
from bridge.trace.outcome import Divergence
from bridge.trace.record import Record
from bridge.trace.signatures.moments import (
    UNCORRECTED,
    Moments,
    last,
    moments_of,
    options_of,
    variants,
)
from bridge.trace.signatures.updates import adapts, options_differ, size, update_of, updated
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
        _first_moment(evidence, records, at)
        or _second_moment(evidence, records, at)
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


def _first_moment(evidence: Evidence, records: list[Record], item: Divergence) -> list[Finding]:
    """Means of gradients that follow another rule: beta1, or decay in them."""
    a, b = (_rule(side, records) for side in (evidence.a, evidence.b))
    if a is None or b is None or max(a.residual, b.residual) > EXACT:
        return []
    (_, new, decay), (_, fresh, less) = a.weights, b.weights
    numbers = {"left": b.residual}
    if not close(new, [fresh]):
        return [
            finding(
                "beta",
                f"beta1 of the port is {1 - fresh:.4g}, that of the reference {1 - new:.4g}.",
                item,
                1 - b.residual,
                **numbers,
            )
        ]
    here, there = decay / new, less / fresh
    if abs(here - there) <= EXACT * max(abs(here), abs(there), 1e-3):
        return []
    coupled, free = ("reference", "port") if abs(here) > abs(there) else ("port", "reference")
    weight = max(here, there, key=abs)
    return [
        finding(
            "decay coupled or decoupled",
            f"The {coupled} adds {weight:.4g} times the weights to "
            f"the gradient before the moments; the {free} does not: as Adam beside AdamW.",
            item,
            0.95,
            reference=here,
            port=there,
        )
    ]


def _rule(side: Side, records: list[Record]) -> Fit | None:
    """Write the mean of the gradients as a sum of the old one, the gradient and the parameter."""
    means = [side.beside(record, "optimizer state", "exp_avg") for record in records]
    earlier = [None if mean is None else last(side, mean) for mean in means]
    new, old = (vector(*map(side.tensor, state)) for state in (means, earlier))
    gradients = vector(*(side.gradient(record) for record in records))
    start = vector(*(side.tensor(side.before(record)) for record in records))
    if new is None or gradients is None or start is None:
        return None
    if old is not None and np.any(old):
        return fit(new, old, gradients, start)
    found = fit(new, gradients, start)
    return None if found is None else Fit((0.0, *found.weights), found.residual)


def _second_moment(evidence: Evidence, records: list[Record], item: Divergence) -> list[Finding]:
    """Means of squares that follow another beta2."""
    b1 = options_of(evidence.a)["b1"]
    ours, theirs = (
        _beta2([m for m in (moments_of(side, record) for record in records) if m is not None], b1)
        for side in (evidence.a, evidence.b)
    )
    if ours is None or theirs is None or close(1 - ours, [1 - theirs]):
        return []
    return [
        finding(
            "beta",
            f"beta2 of the port is {theirs:.6g}, that of the reference {ours:.6g}.",
            item,
            0.95,
            reference=ours,
            port=theirs,
        )
    ]


def _beta2(moments: list[Moments], b1: float) -> float | None:
    """Read beta2 off ``new - old = (1 - beta2) (d² - old)``; d, with its decay, is in the means."""
    shares = []
    for one in moments:
        gradient = (one.mean - b1 * one.mean_before) / (1 - b1)
        moved = np.ravel(one.square - one.square_before)
        found = fit(moved, np.ravel(gradient**2 - one.square_before))
        if found is not None and found.residual < EXACT:
            shares.append(found.weights[0])
    return 1 - float(np.median(shares)) if shares else None


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
