"""What the signatures look at: two traces, and how they differ."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from bridge.trace.align import renamed
from bridge.trace.linear import unprojected
from bridge.trace.outcome import Divergence, Outcome
from bridge.trace.reader import Trace
from bridge.trace.record import Contents, Key, Record
from bridge.trace.signs import Numbers


class Side:
    """One trace, by what the signatures ask for.

    Args:
        trace: of the reference, or of the port.
        names: what this side calls the layers and parameters of the reference.
    """

    def __init__(self, trace: Trace, names: Mapping[str, str]) -> None:
        """Sort the records by their keys."""
        self.trace = trace
        self.names = names
        self._records: dict[Key, Record] = {record.key: record for record in trace.records}

    def like(self, record: Record) -> Record | None:
        """Return what this side has of a record of the reference."""
        return self._records.get(renamed(record, self.names))

    def full(self, record: Record | None) -> Numbers | None:
        """Return all values, of a tensor that is whole or small."""
        if record is None or record.tensor is None:
            return None
        values = self.trace.values(record)
        return unprojected(record.tensor) if values is None else values.astype(np.float64)

    def gradient(self, record: Record) -> Contents | None:
        """Return the gradient that an update of a parameter used."""
        return self.tensor(self.last_gradient(record))

    def before(self, record: Record) -> Record | None:
        """Return what a part of the state was as its step began."""
        own = self.like(record)
        if own is None:
            return None
        earlier = self.history(own)
        return next((r for r in reversed(earlier) if r.step < own.step or r.phase == "init"), None)

    def history(self, record: Record) -> list[Record]:
        """List the records of one part of the state before a record of this side."""
        same = self._states.get(_state(record), [])
        return [other for other in same if other.order < record.order]

    def beside(self, record: Record, kind: str, part: str) -> Record | None:
        """Return another part of the state of the same parameter in the same step."""
        own = renamed(record, self.names)
        return self._records.get((*own[:3], kind, own[4], 0, part))

    def of_step(self, step: int, phase: str, kind: str, replica: int | None = 0) -> list[Record]:
        """List the records of a kind in one phase of a step, of one replica or all."""
        found = self._phases.get((step, phase, kind), [])
        return [r for r in found if replica is None or r.replica == replica]

    def option(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - any option
        """Return an option of the first group of the optimizer."""
        key: Key = (0, "init", 0, "configuration", "optimizer0", 0, f"group0.{name}")
        record = self._records.get(key)
        return default if record is None else record.value

    @staticmethod
    def tensor(record: Record | None) -> Contents | None:
        """Return the tensor of a record, if it has one."""
        return None if record is None else record.tensor

    def last_gradient(self, record: Record) -> Record | None:
        """Find the last gradient of a parameter in the step of a record."""
        name = renamed(record, self.names)[4]
        phases = ("clip", "reduce", "backward")
        keys: Iterator[Key] = ((record.step, p, 0, "gradient", name, 0, "") for p in phases)
        return next((self._records[key] for key in keys if key in self._records), None)

    @cached_property
    def _states(self) -> dict[tuple[object, ...], list[Record]]:
        """Sort what outlives a step, by what it is of."""
        found: dict[tuple[object, ...], list[Record]] = {}
        for record in self.trace.records:
            if record.phase in {"init", "step", "resync"}:
                found.setdefault(_state(record), []).append(record)
        return found

    @cached_property
    def _phases(self) -> dict[tuple[int, str, str], list[Record]]:
        """Sort by step, phase and kind."""
        found: dict[tuple[int, str, str], list[Record]] = {}
        for record in self.trace.records:
            found.setdefault((record.step, record.phase, record.kind), []).append(record)
        return found


class Evidence:
    """Two traces, and how they differ.

    Attributes:
        outcome: of their comparison.
        a: the reference.
        b: the port.
        faults: what differs beyond noise.
        roots: those that differ although what they were computed from does not, of each phase and
            kind in the first step that has any.
    """

    def __init__(
        self, outcome: Outcome, reference: Trace, port: Trace, names: Mapping[str, str]
    ) -> None:
        """Take down what differs."""
        self.outcome = outcome
        self.a, self.b = Side(reference, {}), Side(port, names)
        self.faults = [item for item in outcome.divergences if not item.noise]
        self.roots = _first_steps([item for item in self.faults if item.root]) or self.faults[:1]

    def of(self, phase: str, kind: str, fault: str = "value") -> list[Divergence]:
        """List the roots of a kind in a phase."""
        return [
            item for item in self.roots
            if (item.record.phase, item.record.kind, item.fault) == (phase, kind, fault)
        ]  # fmt: skip


def _first_steps(roots: list[Divergence]) -> list[Divergence]:
    """Keep of each phase and kind the roots of the first step that has any."""
    first: dict[tuple[str, str], int] = {}
    for item in roots:
        first.setdefault((item.record.phase, item.record.kind), item.record.step)
    return [r for r in roots if first[r.record.phase, r.record.kind] == r.record.step]


def _state(record: Record) -> tuple[object, ...]:
    """Take what a part of the state is of."""
    return record.replica, record.kind, record.name, record.part
