"""Records every fault of the test bed and prints what is detected, localized and named.

``PYTHONPATH=. python3 tests/python/trace_faults/table.py``
"""

import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bridge.trace import Trace, compare, read
from bridge.trace.diagnosis import diagnose
from bridge.trace.envelope import NoiseEnvelope, measure
from bridge.trace.finding import Finding
from tests.python.trace_faults import faults_data, faults_loop, faults_model, faults_optimizer
from tests.python.trace_faults.bed import Loop, faults, reference

MODULES = (faults_data, faults_loop, faults_model, faults_optimizer)


@dataclass(frozen=True)
class Row:
    """What came out of one fault."""

    fault: type[Loop]
    detected: bool
    place: tuple[int, str, str] | None
    findings: list[Finding]

    @property
    def localized(self) -> bool:
        """Tell whether the cause is where the fault is."""
        return self.place == self.fault.at

    @property
    def names(self) -> list[str]:
        """List what it looks like."""
        return [item.name for item in self.findings]

    @property
    def named(self) -> bool:
        """Tell whether it looks like what it is, and like nothing else."""
        return self.names == [self.fault.says]


@cache
def healthy(loop: Callable[[], Loop], folder: Path) -> tuple[Trace, NoiseEnvelope]:
    """Record a healthy loop, with its noise."""
    own = folder / type(loop()).__name__
    envelope = measure(lambda model, path: loop().run(path, model), loop().model(), own)
    return read(own / "reference"), envelope


def examine(fault: type[Loop], folder: Path) -> Row:
    """Record a fault, and compare it with its healthy twin."""
    a, envelope = healthy(reference(fault), folder)  # type: ignore[arg-type]
    own = folder / fault.__name__
    with suppress(RuntimeError):
        fault().run(own)
    b = read(own)
    outcome = compare(a, b, envelope=envelope)
    cause = outcome.cause
    place = None
    if cause is not None:
        place = cause.record.step, cause.record.phase, cause.record.name
    return Row(fault, outcome.verdict == "diverged", place, diagnose(outcome, a, b))


def all_faults() -> list[type[Loop]]:
    """List the faults in the order of their names."""
    own = {module.__name__ for module in MODULES}
    return sorted((f for f in faults() if f.__module__ in own), key=lambda fault: fault.__name__)


def main(words: list[str]) -> int:
    """Print the table; of faults with these words in their names, if there are any."""
    chosen = [f for f in all_faults() if not words or any(w in f.__name__ for w in words)]
    with tempfile.TemporaryDirectory() as folder:
        rows = [examine(fault, Path(folder)) for fault in chosen]
    for row in rows:
        fault = row.fault
        marks = "".join("+" if ok else "-" for ok in (row.detected, row.localized, row.named))
        print(f"{marks} {fault.__name__:22} {fault.says}")  # noqa: T201
        for item in row.findings if not row.named or words else []:
            print(f"      {item.name} ({item.confidence}): {item.sentence} [{item.where}]")  # noqa: T201
        if not row.localized:
            print(f"      found at {row.place}, expected {fault.at}")  # noqa: T201
    for what in ("detected", "localized", "named"):
        print(f"{what}: {sum(getattr(row, what) for row in rows)} of {len(rows)}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
