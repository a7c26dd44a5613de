"""Faults of the clipping of gradients."""

import math
from collections.abc import Iterator

from bridge.trace.evidence import Evidence
from bridge.trace.finding import Finding, finding
from bridge.trace.outcome import Divergence
from bridge.trace.record import Contents
from bridge.trace.signatures.gradients import EXACT, both, numbers, ratio_of


def signatures(evidence: Evidence) -> Iterator[Finding]:
    """Look at clipped gradients that were the reference's before.

    Spec: R35.4
    """
    items = [item for item in evidence.of("clip", "gradient") if numbers(item)]
    if items:
        yield from _clipped(items)


def _clipped(items: list[Divergence]) -> Iterator[Finding]:
    """Gradients that are clipped by value, one by one, or at another norm."""
    a, b = both(items)
    tops = [max(-c.summary.minimum, c.summary.maximum) for c in b]
    top = max(tops)
    norms = [c.summary.norm for c in b]
    ours, theirs = _norm(a), _norm(b)
    norms_of = {"reference": ours, "port": theirs}
    if len(items) > 1 and sum(t == top for t in tops) > 1:
        yield finding(
            "clipped by value",
            f"In the port no value of a gradient is beyond {top:.6g}, which "
            "several gradients reach; in the reference they are not cut off there.",
            items[0],
            0.95,
            limit=top,
        )
        return
    same = ratio_of(items)
    if same is not None and same.residual < EXACT:
        yield finding(
            "clipped at another norm",
            f"Clipped, all gradients have norm {theirs:.6g} in the "
            f"port and {ours:.6g} in the reference.",
            items[0],
            1 - same.residual,
            **norms_of,
        )
    elif len(items) > 1 and sum(math.isclose(n, max(norms), rel_tol=1e-4) for n in norms) > 1:
        yield finding(
            "clipped one by one",
            f"In the port several gradients have norm {max(norms):.6g} "
            "each; in the reference that limits all of them together.",
            items[0],
            0.9,
            limit=max(norms),
            **norms_of,
        )


def _norm(gradients: list[Contents]) -> float:
    """Return the norm of all gradients."""
    return math.sqrt(sum(c.summary.norm**2 for c in gradients))
