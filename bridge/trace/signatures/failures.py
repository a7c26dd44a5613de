"""Faults that are plain: exceptions, values that are not finite, records of one side."""

from collections.abc import Iterator

from bridge.trace.evidence import Evidence
from bridge.trace.finding import Finding, finding
from bridge.trace.record import Record


def signatures(evidence: Evidence) -> Iterator[Finding]:
    """Look for what needs no arithmetic.

    Spec: R35.4
    """
    yield from _exceptions(evidence)
    yield from _not_finite(evidence)
    yield from _rates(evidence)


def _exceptions(evidence: Evidence) -> Iterator[Finding]:
    """An exception on one side, or another one."""
    for item in evidence.faults:
        if item.record.kind == "failure":
            side = "port" if item.reference is None else "reference" if item.port is None else ""
            if not side:
                continue
            yield finding(
                "exception on one side",
                f"Step {item.record.step} of the {side} ends with: {item.record.value}",
                item,
                1.0,
            )


def _not_finite(evidence: Evidence) -> Iterator[Finding]:
    """NaN and infinities."""
    for item in evidence.roots[:1]:
        if item.fault != "not finite":
            continue
        counts = []
        for side in (item.reference, item.port):
            summary = side.tensor.summary if side and side.tensor else None
            counts.append((summary.nan, summary.infinite) if summary else (0, 0))
        text = " and ".join(f"{n} NaN, {i} infinite" for n, i in counts)
        yield finding(
            "not finite",
            f"{item.record.name} is not finite: {text}, in the reference and the port.",
            item,
            1.0,
            nan=counts[1][0],
            infinite=counts[1][1],
        )


def _rates(evidence: Evidence) -> Iterator[Finding]:
    """Learning rates as they are recorded."""
    found = [item for item in evidence.roots if item.record.kind == "learning rate"]
    sides = [item for item in found if item.reference and item.port]
    if not sides:
        return
    item = sides[0]
    a, b = _rate(item.reference), _rate(item.port)
    key = ("learning rate", item.record.name, item.record.part)
    ours, theirs = _history(evidence.a.trace.records, key), _history(evidence.b.trace.records, key)
    numbers = {"reference": a, "port": b}
    if len(set(ours)) > 1 and len(set(theirs)) == 1:
        yield finding(
            "scheduler not stepped",
            f"The learning rate of the port stays {b:.6g}; that of "
            f"the reference goes from {ours[0]:.6g} to {ours[-1]:.6g}.",
            item,
            1.0,
            **numbers,
        )
    elif len(set(ours)) > 1 and _shifted(ours, theirs):
        yield finding(
            "scheduler off by one",
            "The learning rates of the port are those of the reference, one step earlier or later.",
            item,
            0.95,
            **numbers,
        )
    else:
        ratio = b / a if a else float("inf")
        yield finding(
            "learning-rate ratio",
            f"The learning rate of the port is {ratio:.6g} times that "
            f"of the reference: {b:.6g}, not {a:.6g}.",
            item,
            1.0,
            ratio=ratio,
            **numbers,
        )


def _rate(record: Record | None) -> float:
    """Read a learning rate."""
    return float(record.value) if record is not None else 0.0


def _history(records: list[Record], key: tuple[str, str, str]) -> list[float]:
    """List a learning rate over the steps."""
    return [float(r.value) for r in records if (r.kind, r.name, r.part) == key]


def _shifted(a: list[float], b: list[float]) -> bool:
    """Tell whether one list is the other a place later or earlier."""
    return a[1:] == b[:-1] or a[:-1] == b[1:]
