"""Says what a divergence looks like: the names of faults, with the numbers behind them."""

from collections.abc import Callable, Iterator, Mapping
from types import ModuleType

from bridge.trace.evidence import Evidence
from bridge.trace.finding import WEAK, Finding, finding
from bridge.trace.outcome import Outcome
from bridge.trace.reader import Trace
from bridge.trace.signatures import (
    adaptive,
    buffers,
    clipping,
    data,
    failures,
    gradients,
    layers,
    losses,
    options,
    reduction,
    setup,
    updates,
)

CATALOGUE: tuple[ModuleType, ...] = (
    failures, options, setup, data, layers, losses, gradients, clipping, reduction, buffers,
    updates, adaptive,
)  # fmt: skip
"""The families of signatures; each has a function of that name."""


def diagnose(
    outcome: Outcome, reference: Trace, port: Trace, names: Mapping[str, str] | None = None
) -> list[Finding]:
    """Name the faults that two traces look like, the surest first.

    Only records that differ beyond noise, although what they were computed from does not, are
    looked at. A signature has to explain what differs by numbers, not only to be likely; where none
    does, the one finding is named ``"no signature"`` and says so.

    Args:
        outcome: of :func:`bridge.trace.compare`.
        reference: the traces that were compared.
        port: the other.
        names: as for ``compare``.

    Returns:
        One finding for each name, none where nothing diverged.

    Spec: R35.4, R35.6
    """
    if outcome.first is None:
        return []
    evidence = Evidence(outcome, reference, port, names or {})
    found: dict[str, Finding] = {}
    for family in CATALOGUE:
        signatures: Callable[[Evidence], Iterator[Finding]] = family.signatures
        for item in signatures(evidence):
            found.setdefault(item.name, item)
    sure = [item for item in found.values() if item.confidence > WEAK] or list(found.values())
    if sure:
        return sorted(sure, key=lambda item: -item.confidence)
    at = outcome.cause or outcome.first
    return [
        finding("no signature", f"A {at.fault} fault that no known signature explains.", at, 0.0)
    ]
