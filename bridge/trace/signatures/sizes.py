"""Faults of the size and the sign of updates."""

import numpy as np

from bridge.trace.evidence import Evidence
from bridge.trace.finding import Finding, finding
from bridge.trace.linear import close, fit
from bridge.trace.outcome import Divergence
from bridge.trace.signatures.update import Update


def size(evidence: Evidence, a: Update, b: Update, item: Divergence) -> list[Finding]:
    """Name updates that are a multiple of the reference's.

    Spec: R35.4
    """
    found = fit(b.change, a.change)
    gap = float(np.linalg.norm(b.change - a.change))
    if found is None or found.residual * float(np.linalg.norm(b.change)) > 0.01 * gap:
        return []
    return [_sized(found.weights[0], found.residual, evidence, item)]


def _sized(ratio: float, left: float, evidence: Evidence, item: Divergence) -> Finding:
    """Name a factor of the updates."""
    rate = float(evidence.a.option("lr") or 0.0)
    momentum = float(evidence.a.option("momentum") or 0.0)
    text = f"The updates of the port are {ratio:.6g} times those of the reference"
    numbers = {"ratio": ratio, "left": left}
    if close(ratio, [-1.0]):
        return finding(
            "sign of the update", f"{text}: the sign is wrong.", item, 1 - left, **numbers
        )
    if momentum and close(ratio, [1 + momentum, 1 / (1 + momentum)], 1e-6):
        return finding(
            "Nesterov momentum",
            f"{text}, one more than the momentum in the first step: one side looks ahead.",
            item,
            0.95,
            **numbers,
        )
    if rate and close(ratio, [rate], 1e-4):
        return finding(
            "learning rate twice",
            f"{text}, which is the learning rate: it is multiplied twice.",
            item,
            1 - left,
            **numbers,
        )
    if rate and close(ratio, [1 / rate], 1e-4):
        return finding(
            "learning rate missing",
            f"{text}, which is one by the learning rate.",
            item,
            1 - left,
            **numbers,
        )
    if close(ratio, [2.0], 1e-4):
        return finding(
            "update twice", f"{text}: as if the optimizer stepped twice.", item, 0.9, **numbers
        )
    return finding(
        "learning-rate ratio",
        f"{text}, at the same learning rate in the records.",
        item,
        0.95 * (1 - left),
        **numbers,
    )
