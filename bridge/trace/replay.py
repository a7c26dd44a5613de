"""Teacher-forced replay: every layer and update of a port, given what the reference's was given."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bridge.trace.compare import compare
from bridge.trace.outcome import Divergence, Outcome
from bridge.trace.pairs import Envelope
from bridge.trace.reader import Trace, read
from bridge.trace.record import Contents, Record
from bridge.trace.summary import summarize
from bridge.trace.teacher import LayerCall, Teacher, UpdateCall
from bridge.trace.writer import Writer
from bridge.trace.xxh import xxh128

Array = npt.NDArray[np.generic]
Answer = Mapping[tuple[str, str, str], Array]
"""Tensors by kind, name and part, as the reference's trace names them."""


class Runner(Protocol):
    """Runs parts of a port on what it is given; whatever it keeps between calls is not seen.

    Either may leave out what it cannot tell, and raise an exception where it cannot run.

    Spec: R35.7
    """

    def layer(self, call: LayerCall) -> Answer:
        """Run a layer: each ``activation`` by part, and the ``gradient`` of its parameters."""

    def update(self, call: UpdateCall) -> Answer:
        """Update all parameters: each ``parameter``, and the ``optimizer state`` by part."""


@dataclass(frozen=True)
class Replay:
    """What a replay found.

    Attributes:
        outcome: every divergence with ``root`` is a fault of its own.
        trace: of the answers, for ``diagnose``.
    """

    outcome: Outcome
    trace: Trace


def replay(
    reference: Trace | str | Path,
    runner: Runner,
    folder: str | Path,
    *,
    envelope: Envelope | None = None,
) -> Replay:
    """Give each part of a port what the reference's had, so that no fault hides another.

    The answers are written as a trace whose other records are the reference's own. A layer is at
    fault where its output differs and no layer inside of it is; a gradient where its layer's output
    does not differ; an update where its result differs.

    Args:
        reference: a trace with whole tensors; layers without are listed as not observed. Gradients
            are replayed where it has those of activations.
        runner: runs the port.
        folder: for the trace of the answers.
        envelope: what tells rounding from a fault.

    Spec: R35.7
    """
    base = reference if isinstance(reference, Trace) else read(reference)
    answers, silent = _answers(base, runner)
    with Writer(
        folder, {key: base.about[key] for key in ("language", "replicas") if key in base.about}
    ) as writer:
        for record in base.records:
            writer.write([_answered(base, record, answers, silent)])
        if base.complete:
            writer.close(base.steps)
    trace = read(folder)
    outcome = compare(base, trace, envelope=envelope)
    return Replay(replace(outcome, divergences=_roots(outcome.divergences)), trace)


Place = tuple[int, int, str, str, int, str]


def _answers(base: Trace, runner: Runner) -> tuple[dict[Place, Array], dict[tuple[Any, ...], str]]:
    """Run everything; return the answers, and why some layers have none."""
    answers: dict[Place, Array] = {}
    silent: dict[tuple[Any, ...], str] = {}
    teacher = Teacher(base)
    for call in teacher.layers():
        key = (call.step, call.replica, call.name, call.call)
        try:
            found: Answer = {} if call.missing else runner.layer(call)
        except Exception as error:  # noqa: BLE001 - a port can fail in any way
            silent[key] = f"could not be replayed: {error}"
            continue
        if call.missing:
            silent[key] = f"not replayed: {call.missing} is not whole"
        _keep(answers, call.step, call.replica, call.call, found)
    for update in teacher.updates():
        try:
            _keep(answers, update.step, 0, 0, runner.update(update))
        except Exception as error:  # noqa: BLE001, PERF203
            silent[update.step, 0, "update", 0] = f"could not be replayed: {error}"
    return answers, silent


def _keep(answers: dict[Place, Array], step: int, replica: int, call: int, found: Answer) -> None:
    """Sort answers in by what they are of."""
    for (kind, name, part), values in found.items():
        number = call if kind == "activation" else 0
        answers[step, replica, kind, name, number, part] = values


def _answered(
    base: Trace,
    record: Record,
    answers: Mapping[Place, Array],
    silent: Mapping[tuple[Any, ...], str],
) -> tuple[Record, bytes | None]:
    """Put an answer in the place of a record, or leave it as it is."""
    place = (record.step, record.replica, record.kind, record.name, record.call, record.part)
    own = record.phase in {"forward", "backward", "step"}
    values = answers.get(place) if own else None
    if values is not None and record.tensor is not None:
        return _taken(record, values)
    reason = silent.get((record.step, record.replica, record.name, record.call))
    if reason is not None and record.kind == "activation":
        return replace(record, tensor=None, unobserved=reason), None
    whole = base.values(record)
    return record, None if whole is None else whole.tobytes()


def _taken(record: Record, values: Array) -> tuple[Record, bytes]:
    """Take an answer down as a recorder does."""
    flat = np.ascontiguousarray(values)
    content = flat.tobytes()
    tensor = Contents(
        str(values.dtype), tuple(values.shape), xxh128(memoryview(content)), summarize(flat.ravel())
    )
    return replace(record, tensor=tensor), content


def _roots(found: Iterable[Divergence]) -> list[Divergence]:
    """Mark the faults: all that does not follow from another fault in the same layer."""
    found = list(found)
    bad = [item.record for item in found if item.record.kind == "activation" and not item.noise]
    return [
        replace(item, root=not any(_follows(item.record, other) for other in bad)) for item in found
    ]


def _follows(record: Record, other: Record) -> bool:
    """Tell whether a record follows from a wrong output of a layer."""
    if (record.step, record.replica) != (other.step, other.replica):
        return False
    if record.kind == "activation":
        inside = not record.name or other.name.startswith(f"{record.name}.")
        return inside and record.name != other.name
    return record.kind == "gradient" and record.name.rpartition(".")[0] == other.name
