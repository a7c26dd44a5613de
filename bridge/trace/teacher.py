"""What a reference gave each layer and each update, from the whole tensors of its trace."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bridge.trace.evidence import Side
from bridge.trace.reader import Trace
from bridge.trace.record import Record

Array = npt.NDArray[np.generic]
STATE = ("parameter", "buffer")


@dataclass(frozen=True)
class LayerCall:
    """One call of a layer.

    Attributes:
        step: of the training.
        replica: whose layer it is.
        name: of the layer.
        call: which of that name in the step.
        inputs: the tensors that went in, in order.
        state: parameters and buffers by their whole names, as the step began.
        gradients: of what came out, by part; empty where they are not known.
        missing: what is not whole, so that the call cannot be replayed.
    """

    step: int
    replica: int
    name: str
    call: int
    inputs: list[Array]
    state: Mapping[str, Array]
    gradients: Mapping[str, Array]
    missing: str | None = None


@dataclass(frozen=True)
class UpdateCall:
    """One update.

    Attributes:
        step: of the training.
        parameters: by name, as the step began.
        gradients: by name; None is left out.
        state: of the optimizer, by name and key, as the step began.
        rates: the learning rates by group.
    """

    step: int
    parameters: Mapping[str, Array]
    gradients: Mapping[str, Array]
    state: Mapping[tuple[str, str], Array | int]
    rates: Mapping[str, float] = field(default_factory=dict)


class Teacher:
    """Lists what can be replayed.

    Args:
        trace: of the reference.

    Spec: R35.7
    """

    def __init__(self, trace: Trace) -> None:
        """Sort the records."""
        self._trace = trace
        self._side = Side(trace, {})

    def layers(self) -> Iterator[LayerCall]:
        """List the calls of layers, in the order of execution."""
        seen = set()
        for record in self._trace.records:
            key = (record.step, record.replica, record.name, record.call)
            if record.phase == "forward" and record.kind == "activation" and key not in seen:
                seen.add(key)
                if record.unobserved is None:
                    yield self._layer(record)

    def updates(self) -> Iterator[UpdateCall]:
        """List the updates whose parameters and gradients are whole."""
        for step in range(self._trace.steps):
            after = self._side.of_step(step, "step", "parameter")
            before = {r.name: self._values(self._side.before(r)) for r in after}
            gradients = {r.name: self._side.last_gradient(r) for r in after}
            known = {name: self._values(r) for name, r in gradients.items() if r and r.tensor}
            if after and _whole(before) and _whole(known):
                yield UpdateCall(
                    step, _only(before), _only(known), self._state(step), self._rates(step)
                )

    def _layer(self, output: Record) -> LayerCall:
        """Collect what a call was given."""
        inputs = [r for r in self._side.of_step(output.step, "forward", "input", output.replica)
                  if (r.name, r.call) == (output.name, output.call)]  # fmt: skip
        values = [self._values(r) for r in inputs]
        state = {r.name: self._values(r) for r in self._begun(output)}
        lost = [r.name for r, v in zip(inputs, values, strict=True) if v is None]
        lost += [name for name, v in state.items() if v is None]
        missing = f"{lost[0] or 'the input'}" if lost else None if inputs else "the input"
        return LayerCall(
            output.step, output.replica, output.name, output.call,
            [v for v in values if v is not None], _only(state), self._gradients(output), missing,
        )  # fmt: skip

    def _begun(self, output: Record) -> Iterator[Record]:
        """List the parameters and buffers of a layer as its step began."""
        step = output.step
        phases = ("step", "resync") if step else ("init",)
        for phase in phases:
            for kind in STATE:
                for r in self._side.of_step(step - 1 if step else 0, phase, kind, output.replica):
                    if not output.name or r.name.startswith(f"{output.name}."):
                        yield r

    def _gradients(self, output: Record) -> dict[str, Array]:
        """Return the gradients of an output, of a layer that is called once in its step."""
        found = self._side.of_step(output.step, "backward", "gradient", output.replica)
        own = {r.part: self._values(r) for r in found if r.name == output.name and r.part}
        outputs = self._side.of_step(output.step, "forward", "activation", output.replica)
        calls = Counter(r.name for r in outputs if r.part == output.part)
        return _only(own) if calls[output.name] == 1 and _whole(own) else {}

    def _state(self, step: int) -> dict[tuple[str, str], Array | int]:
        """Return the state of the optimizer as a step began."""
        found: dict[tuple[str, str], Array | int] = {}
        for record in self._side.of_step(step - 1, "step", "optimizer state") if step else ():
            values = self._values(record)
            if values is not None:
                found[record.name, record.part] = values
            elif record.tensor is None:
                found[record.name, record.part] = int(record.value)
        return found

    def _rates(self, step: int) -> dict[str, float]:
        """Return the learning rates as a step began."""
        at, phase = (step - 1, "step") if step else (0, "init")
        return {r.part: float(r.value) for r in self._side.of_step(at, phase, "learning rate")}

    def _values(self, record: Record | None) -> Array | None:
        """Return all values of a record in its own dtype."""
        if record is None or record.tensor is None:
            return None
        return self._trace.values(record)


def _whole(values: Mapping[str, Array | None]) -> bool:
    """Tell whether nothing is missing."""
    return all(value is not None for value in values.values())


def _only(values: Mapping[str, Array | None]) -> dict[str, Array]:
    """Leave out what is not there."""
    return {name: value for name, value in values.items() if value is not None}
