"""Faults of the moments of Adam: betas, and decay in them."""

import numpy as np

from bridge.trace.evidence import Evidence, Side
from bridge.trace.finding import Finding, finding
from bridge.trace.linear import Fit, close, fit, vector
from bridge.trace.outcome import Divergence
from bridge.trace.record import Record
from bridge.trace.signatures.moments import Moments, last, moments_of, options_of

EXACT = 1e-4


def first_moment(evidence: Evidence, records: list[Record], item: Divergence) -> list[Finding]:
    """Means of gradients that follow another rule: beta1, or decay in them.

    Spec: R35.4
    """
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


def second_moment(evidence: Evidence, records: list[Record], item: Divergence) -> list[Finding]:
    """Means of squares that follow another beta2.

    Spec: R35.4
    """
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
