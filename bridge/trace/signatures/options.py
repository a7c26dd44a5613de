"""Faults that the configuration shows: options, types, modes, frozen parameters."""

from collections.abc import Iterator

from bridge.trace.align import renamed
from bridge.trace.evidence import Evidence
from bridge.trace.finding import WEAK, Finding, finding
from bridge.trace.outcome import Divergence
from bridge.trace.record import Record


def signatures(evidence: Evidence) -> Iterator[Finding]:
    """Look at configuration that differs where it explains what differs.

    Spec: R35.4
    """
    for one, other in changed(evidence):
        at = _shown(evidence, one)
        if at is None or one.part.endswith(".lr"):
            continue
        values = f"{one.value!r} in the reference and {other.value!r} in the port"
        name, text = _named(one)
        # A class of one's own may well compute the same.
        sure = WEAK if one.part == "type" else 0.95
        yield finding(name, f"{text} is {values}.", at, sure)


def changed(evidence: Evidence) -> Iterator[tuple[Record, Record]]:
    """List the configuration of layers, parameters and optimizers that differs."""
    others = {r.key: r for r in evidence.b.trace.records if r.kind == "configuration"}
    for record in evidence.a.trace.records:
        if record.kind == "configuration" and record.phase == "init":
            other = others.get(renamed(record, evidence.b.names))
            if other is not None and other.value != record.value:
                yield record, other


def _named(record: Record) -> tuple[str, str]:
    """Name an option."""
    name = record.name or "the model"
    if record.part == "training":
        return "layer in another mode", f"training of {name}"
    if record.part == "requires_grad":
        return "frozen parameter", f"requires_grad of {name}"
    if record.part == "type":
        kind = "optimizer" if record.name.startswith("optimizer") else "layer"
        return f"other {kind}", f"The type of {name}"
    return "optimizer option", f"{record.part.partition('.')[2]} of {name}"


def _shown(evidence: Evidence, record: Record) -> Divergence | None:
    """Find a divergence that the option explains: of that layer, parameter or any update."""
    for item in evidence.roots:
        own = item.record
        if record.name.startswith("optimizer"):
            if own.phase == "step" and own.kind in {"parameter", "optimizer state"}:
                return item
        elif own.phase != "init" and (
            own.name == record.name or own.name.startswith(f"{record.name}.")
        ):
            return item
    return None
