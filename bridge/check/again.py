"""What is run again where two sides differ: a closer look, and the noise envelope."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bridge.check.batches import Batch
from bridge.check.config import Config
from bridge.check.result import Values
from bridge.check.sides import Reference, Side, State
from bridge.trace import compare, read
from bridge.trace.envelope import RUNS, NoiseEnvelope, envelope_of
from bridge.trace.outcome import Divergence


@dataclass(frozen=True)
class Again:
    """Makes both sides anew, as they began.

    Attributes:
        config: of the check.
        traces: the folder for traces; ``reference`` is the one of the reference's run.
        reference: makes the reference.
        port: makes the port.
        beginning: what the reference and the port started from.
        batches: those of the run.
        names: names of the reference, and what the port calls them.
    """

    config: Config
    traces: Path
    reference: Callable[[], Reference]
    port: Callable[[], Side]
    beginning: Sequence[State]
    batches: Sequence[Batch]
    names: Mapping[str, str]

    def envelope(self) -> NoiseEnvelope:
        """Run the reference with every weight moved by one ulp, several times.

        Spec: R34.7
        """
        folders = [self.traces / f"noise{index}" for index in range(RUNS)]
        for index, folder in enumerate(folders):
            side = self.reference()
            side.load(self.beginning[0])
            side.nudge(index)
            side.describe()  # It seeds.
            side.record(folder, self.batches)
        return envelope_of(self.traces / "reference", folders)

    def closer(self, first: Divergence) -> Values | None:
        """Run both sides up to the divergence, with whole tensors in its step.

        Spec: R34.3
        """
        step = first.record.step
        folders = self.traces / "closer-reference", self.traces / "closer-port"
        sides = self.reference(), self.port()
        for side, state, folder in zip(sides, self.beginning, folders, strict=True):
            side.load(state)
            side.describe()
            side.record(folder, self.batches[: step + 1], step)
        a, b = (read(folder) for folder in folders)
        again = compare(a, b, names=self.names)
        same = (d for d in again.divergences if d.record.key == first.record.key)
        found = next(same, None)
        if found is None or found.reference is None or found.port is None:
            return None
        return _largest(a.values(found.reference), b.values(found.port))


def _largest(x: Any, y: Any) -> Values | None:  # noqa: ANN401 - arrays, or None
    """Find the largest difference of two arrays."""
    if x is None or y is None or x.shape != y.shape or not x.size:
        return None
    flat = int(np.argmax(np.abs(x.astype(np.float64) - y.astype(np.float64))))
    index = tuple(int(i) for i in np.unravel_index(flat, x.shape))
    one, two = x[index], y[index]
    unit = np.spacing(max(abs(one), abs(two))) if x.dtype.kind == "f" else 1
    return Values(index, float(one), float(two), float(abs(float(one) - float(two)) / float(unit)))
