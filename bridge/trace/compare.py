"""Compares two traces: verdict, first divergence, root causes."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bridge.trace.align import align, observed, reordered
from bridge.trace.causes import Causes
from bridge.trace.distance import Rule
from bridge.trace.outcome import Divergence, Outcome, Verdict, where
from bridge.trace.pairs import Envelope, Pairs, same_bits
from bridge.trace.reader import Trace, read
from bridge.trace.record import Record


def compare(
    reference: Trace | str | Path,
    port: Trace | str | Path,
    *,
    rule: Rule = "bitwise",
    names: Mapping[str, str] | None = None,
    envelope: Envelope | None = None,
) -> Outcome:
    """Compare two traces record by record.

    Args:
        reference: a trace, or its folder.
        port: the other.
        rule: ``"bitwise"``, or ``"float32"`` where the builds differ and training is in float64.
        names: names of layers or parameters of the reference, and what the port calls them.
        envelope: what tells rounding from a fault; without, no difference is taken for rounding.

    Raises:
        TraceError: a folder without a trace that can be read.

    Spec: R30.7, R30.8, R30.9
    """
    a, b = (side if isinstance(side, Trace) else read(side) for side in (reference, port))
    if rule not in {"bitwise", "float32"}:
        message = f"compare: expected rule bitwise or float32, got {rule}"
        raise ValueError(message)
    pairs, unseen = observed(align(a.records, b.records, names or {}), names or {})
    notes = [note for pair in pairs for note in _note(*pair)]
    found, same, equal = [], 0, 0
    compared = Pairs(a, b, rule, envelope, moved={id(one) for one, _ in reordered(pairs)})
    causes, bad, noisy = Causes(a.records), set[int](), set[int]()
    for one, other in pairs:
        divergence = compared.divergence(one, other)
        if divergence is None:
            same += 1
            equal += same_bits(one, other)
            continue
        # What differs by rounding alone is no cause of a fault.
        faults = bad | noisy if divergence.noise else bad
        root = one is not None and not any(id(record) in faults for record in causes.of(one))
        found.append(replace(divergence, root=root))
        (noisy if divergence.noise else bad).add(id(one))
    verdict, reason = _verdict(a, b, found, same)
    return Outcome(verdict, reason, rule, same + len(found), equal, found, unseen, notes)


def _verdict(a: Trace, b: Trace, found: list[Divergence], same: int) -> tuple[Verdict, str]:
    """Put the pairs together."""
    first = next((item for item in found if not item.noise), None)
    if not same or not a.steps or not b.steps:
        return "incomparable", f"There is nothing to compare: {a.steps} and {b.steps} steps."
    if first is not None:
        return "diverged", f"First divergence: {where(first.record)}: {first.fault}."
    for name, side in (("reference", a), ("port", b)):
        if not side.complete:
            return "incomparable", f"The trace of the {name} has no end: its program was killed."
    if found:
        return "equivalent", _noise(found)
    return "identical", f"All {same} records of {a.steps} steps are identical."


def _noise(found: list[Divergence]) -> str:
    """Say what differs inside the envelope, and since when."""
    since = f"since {where(found[0].record)}"
    kinds = ", ".join(sorted({item.record.kind for item in found}))
    return f"{len(found)} records differ, all inside the noise envelope, {since}: {kinds}."


def _note(one: Record | None, other: Record | None) -> list[str]:
    """Say how configuration differs."""
    record = one or other
    if (
        record is None
        or record.kind != "configuration"
        or (one and other and one.value == other.value)
    ):
        return []
    sides = [f"{side.value!r}" if side else "nothing" for side in (one, other)]
    return [f"{where(record)}: {sides[0]} in the reference, {sides[1]} in the port"]
