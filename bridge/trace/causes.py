"""What a record was computed from, as far as a trace shows it."""

from collections.abc import Iterable, Iterator

from bridge.trace.record import Record

STATE = ("parameter", "buffer", "optimizer state", "learning rate", "random state")


class Causes:
    """Finds the records that another one was computed from.

    Args:
        records: of one trace, in the order of execution.

    Spec: R30.8
    """

    def __init__(self, records: Iterable[Record]) -> None:
        """Sort the records by step, and the state that each step began with."""
        self._steps: dict[int, list[Record]] = {}
        self._before: dict[int, list[Record]] = {}
        state: list[Record] = []
        for record in records:
            if record.phase == "init":
                state.append(record)
                continue
            if record.step not in self._steps:
                self._before[record.step] = state
                self._steps[record.step], state = [], []
            self._steps[record.step].append(record)
            if record.phase in {"step", "resync"}:
                state.append(record)

    def of(self, record: Record) -> Iterator[Record]:
        """List what a record was computed from, or what came before it where that is not known."""
        if record.phase == "init":
            return
        step = self._steps[record.step]
        own = [r for r in step if r.replica == record.replica and r.order < record.order]
        if record.kind == "activation":
            yield from self._into_layer(record, own)
        elif record.phase in {"forward", "loss"}:
            yield from (r for r in own if r.kind in {"input", "activation"})
        elif record.phase == "backward":
            yield from (r for r in own if r.kind in {"activation", "loss"})
        elif record.phase in {"reduce", "clip"}:
            yield from (r for r in step if r.kind == "gradient" and r.order < record.order
                        and r.phase != record.phase)  # fmt: skip
        elif record.phase == "step":
            yield from self._into_update(record, own)
        elif record.phase == "resync":
            yield from (r for r in step if (r.phase, r.kind, r.name, r.part) == (
                "step", record.kind, record.name, record.part))  # fmt: skip

    def _into_layer(self, record: Record, own: Iterable[Record]) -> Iterator[Record]:
        """List what goes into a layer: its inputs, what its own layers gave, and its state."""
        for other in own:
            same = (other.name, other.call) == (record.name, record.call)
            if (other.kind == "input" and same) or (
                other.kind == "activation" and _below(other, record.name)
            ):
                yield other
        yield from self._held(record, record.name)

    def _into_update(self, record: Record, own: Iterable[Record]) -> Iterator[Record]:
        """List what goes into an update: the last gradient, and the state before."""
        if record.kind == "buffer":
            layer = record.name.rpartition(".")[0]
            yield from (r for r in own if r.kind == "input" and r.name == layer)
        gradients = {r.phase: r for r in own if r.kind == "gradient" and r.name == record.name}
        if record.kind in {"parameter", "optimizer state"} and gradients:
            yield max(gradients.values(), key=lambda r: r.order)
        yield from self._held(record, record.name)

    def _held(self, record: Record, name: str) -> Iterator[Record]:
        """List the state that a step began with, of what has a name or is below it."""
        for other in self._before[record.step]:
            if other.replica == record.replica and other.kind in STATE:
                rates = other.kind == "learning rate" and record.kind != "activation"
                if rates or other.name == name or _below(other, name):
                    yield other


def _below(record: Record, name: str) -> bool:
    """Tell whether a record is of something inside a layer; the model has the empty name."""
    return record.name != name and (not name or record.name.startswith(f"{name}."))
