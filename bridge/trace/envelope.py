"""The noise envelope: how far rounding alone moves each record of a run."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.trace.distance import EPSILON, Distance, estimate
from bridge.trace.distance import measure as exact
from bridge.trace.reader import Trace, read
from bridge.trace.record import Key, Record
from bridge.trace.writer import RECORDS

if TYPE_CHECKING:
    from torch import nn

FEWEST, RUNS = 5, 8
RISK = 1e-6
"""How often a healthy record may be outside."""


@dataclass(frozen=True)
class NoiseEnvelope:
    """Knows how far each record of a reference moves when only its rounding changes.

    Attributes:
        limits: the largest norm of a difference that is noise, by the key of the record.
        runs: how many runs were measured.
        factor: by how much a limit is above what was measured.

    Spec: R35.1, R35.2
    """

    limits: Mapping[Key, float]
    runs: int
    factor: float

    def holds(self, record: Record, distance: Distance) -> bool:
        """Tell whether a difference is inside; a record that no run had is not."""
        return distance.norm <= self.limits.get(record.key, 0.0)


def safety(runs: int) -> float:
    """Return by how much the largest of several distances must be raised to hold one more.

    The distances of healthy runs are taken for the sizes of normal numbers, the widest case: one
    direction of growth rules a chaotic training, and a loss is one number. With ``f`` times the
    largest of ``n`` sizes, one more is outside with a probability below
    ``(sqrt(2 / pi) / f) ** n * E|z| ** n``, which is set to one in a million.

    Args:
        runs: at least 5.

    Raises:
        ValueError: fewer runs.

    Spec: R35.1
    """
    if runs < FEWEST:
        message = f"envelope: expected at least {FEWEST} runs, got {runs}"
        raise ValueError(message)
    moment: float = 2.0 ** (runs / 2) * math.gamma((runs + 1) / 2) / math.sqrt(math.pi)
    return float(math.sqrt(2 / math.pi) * (moment / RISK) ** (1 / runs))


def envelope_of(reference: Trace | str | Path, runs: Iterable[Trace | str | Path]) -> NoiseEnvelope:
    """Measure an envelope from recorded runs.

    What was measured in a step holds for the later ones too, for a jump can come a step sooner or
    later. No limit is below an ulp of the whole tensor, times the factor.

    Args:
        reference: a trace, or its folder.
        runs: those of the same program with every weight moved by one ulp, see :func:`nudge`; a
            folder may hold several.

    Raises:
        ValueError: fewer than 5 runs.
        TraceError: a folder without a trace.

    Spec: R35.1, R35.2
    """
    base = reference if isinstance(reference, Trace) else read(reference)
    moved: dict[Key, float] = {}
    count = 0
    for run in _traces(runs):
        count += 1
        others = {record.key: record for record in run.records}
        for record in base.records:
            norm = _moved(base, record, run, others.get(record.key))
            if norm is not None:
                moved[record.key] = max(norm, moved.get(record.key, 0.0))
    factor = safety(count)
    return NoiseEnvelope(_limits(base, moved, factor), count, factor)


def measure(
    run: "Callable[[nn.Module, Path], object]",
    model: "nn.Module",
    folder: str | Path,
    *,
    runs: int = RUNS,
    seed: int = 0,
) -> NoiseEnvelope:
    """Run a reference, then again several times with every weight moved by one ulp.

    Each run gets a copy of the model, and torch's random numbers as they were.

    Args:
        run: trains a model and records the trace in a folder; it takes its batches anew.
        model: as training begins; it is left as it is.
        folder: for the traces: ``reference`` and ``noise0``, ``noise1``, ….
        runs: how many, at least 5.
        seed: of the directions.

    Raises:
        ValueError: fewer than 5 runs.

    Spec: R35.1, R35.3
    """
    import torch  # noqa: PLC0415 - comparing needs no torch

    from bridge.trace.nudge import nudge, twin  # noqa: PLC0415

    safety(runs)
    names = ["reference", *(f"noise{index}" for index in range(runs))]
    folders = [Path(folder) / name for name in names]
    for index, path in enumerate(folders):
        own = twin(model)
        if index:
            nudge(own, seed + index)
        with torch.random.fork_rng(devices=[]):
            run(own, path)
    return envelope_of(folders[0], folders[1:])


def _traces(runs: Iterable[Trace | str | Path]) -> Iterable[Trace]:
    """Read runs one after the other."""
    for run in runs:
        if isinstance(run, Trace):
            yield run
        elif (Path(run) / RECORDS).is_file():
            yield read(run)
        else:
            found = sorted(file.parent for file in Path(run).glob(f"noise*/{RECORDS}"))
            yield from map(read, found or [Path(run)])


def _moved(base: Trace, record: Record, run: Trace, other: Record | None) -> float | None:
    """Measure how far a record moved, or None where that cannot be told."""
    if record.tensor is None or other is None or other.tensor is None:
        return None
    a, b = record.tensor, other.tensor
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return None
    x, y = base.values(record), run.values(other)
    distance = exact(a, b, x, y) if x is not None and y is not None else estimate(a, b)
    return None if distance is None else distance.norm


def _limits(base: Trace, moved: Mapping[Key, float], factor: float) -> dict[Key, float]:
    """Turn distances into limits."""
    limits: dict[Key, float] = {}
    highest: dict[tuple[object, ...], float] = {}
    for record in base.records:
        if record.tensor is None or record.key not in moved:
            continue
        family = record.key[1:]
        highest[family] = max(highest.get(family, 0.0), moved[record.key])
        ulp = EPSILON.get(record.tensor.dtype, 0.0) * record.tensor.summary.norm
        limits[record.key] = factor * max(highest[family], ulp)
    return limits
