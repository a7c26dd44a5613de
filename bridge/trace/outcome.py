"""What comes out of the comparison of two traces."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from bridge.trace.distance import Distance, Rule
from bridge.trace.record import Record

Verdict = Literal["identical", "equivalent", "diverged", "incomparable"]
Fault = Literal["value", "missing", "extra", "reordered", "dtype", "shape", "not finite", "failure"]


@dataclass(frozen=True)
class Divergence:
    """One pair of records that differs: on one side there may be none.

    ``root`` tells that what it was computed from is identical; ``noise`` that it is inside the
    noise envelope.
    """

    fault: Fault
    reference: Record | None
    port: Record | None
    distance: Distance | None = None
    root: bool = False
    noise: bool = False

    @property
    def record(self) -> Record:
        """The reference's record, or the port's where that is all there is."""
        record = self.reference or self.port
        assert record is not None, "a pair has a record"  # noqa: S101 - for the type checker
        return record

    def to_json(self) -> dict[str, Any]:
        """Return what JSON has of it."""
        record = self.record
        sides = {"reference": self.reference, "port": self.port}
        return {
            "fault": self.fault,
            "where": where(record),
            "step": record.step,
            "phase": record.phase,
            "replica": record.replica,
            "kind": record.kind,
            "name": record.name,
            "part": record.part,
            "call": record.call,
            "root": self.root,
            "noise": self.noise,
            "distance": None if self.distance is None else _finite(asdict(self.distance)),
            **{side: None if own is None else own.to_json() for side, own in sides.items()},
        }


@dataclass(frozen=True)
class Outcome:
    """The verdict on two traces, and what it rests on.

    ``first`` is the first divergence in the order of execution, ``cause`` the first whose inputs
    are identical. ``unobserved`` lists what a side did not see, ``notes`` configuration that
    differs: neither changes the verdict by itself.

    Spec: R30.8, R30.9
    """

    verdict: Verdict
    reason: str
    rule: Rule
    records: int
    bit_equal: int
    divergences: list[Divergence]
    unobserved: list[str]
    notes: list[str]

    @property
    def first(self) -> Divergence | None:
        """The first divergence in the order of execution."""
        return next((item for item in self.divergences if not item.noise), None)

    @property
    def cause(self) -> Divergence | None:
        """The first divergence whose inputs are identical."""
        return next((item for item in self.divergences if item.root and not item.noise), None)

    def exit_code(self, *, strict: bool = False) -> int:
        """Return 0 for identical, 0 or if strict 1 for equivalent, 1 for diverged, else 2."""
        return {"identical": 0, "equivalent": int(strict), "diverged": 1, "incomparable": 2}[
            self.verdict
        ]

    def to_json(self) -> dict[str, Any]:
        """Return what JSON has of it."""
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "rule": self.rule,
            "records": self.records,
            "bit_equal": self.bit_equal,
            "first": None if self.first is None else self.first.to_json(),
            "cause": None if self.cause is None else self.cause.to_json(),
            "divergences": [divergence.to_json() for divergence in self.divergences],
            "unobserved": self.unobserved,
            "notes": self.notes,
        }


def where(record: Record) -> str:
    """Say where a record belongs, in words."""
    return ", ".join(_places(record))


def _places(record: Record) -> Iterator[str]:
    """Name step, phase, replica, what it is and which call."""
    name = record.name or "the model"
    if record.phase == "init":
        yield "before step 0"
    else:
        yield f"step {record.step}"
        yield record.phase
    yield f"replica {record.replica}"
    yield f"{record.kind} {name}" + (f" {record.part}" if record.part else "")
    if record.call:
        yield f"call {record.call}"


def _finite(numbers: dict[str, Any]) -> dict[str, Any]:
    """Write numbers that JSON does not have as text."""
    return {
        key: value if not isinstance(value, float) or math.isfinite(value) else str(value)
        for key, value in numbers.items()
    }
