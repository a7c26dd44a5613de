"""Reads traces, without torch."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bridge.trace.record import Record, from_json
from bridge.trace.writer import FORMAT, RECORDS, VERSION

DTYPES = {"bool": "?", "uint8": "u1", "int8": "i1", "int16": "<i2", "int32": "<i4", "int64": "<i8",
          "float16": "<f2", "float32": "<f4", "float64": "<f8"}  # fmt: skip
"""The dtypes of whole tensors that numpy has."""


class TraceError(ValueError):
    """Something that is no trace, or not one that this version reads."""


@dataclass(frozen=True)
class Trace:
    """A trace that was read.

    ``complete`` tells whether the program ended it; one that was killed leaves what it wrote.
    """

    folder: Path
    about: dict[str, Any]
    records: list[Record]
    complete: bool

    @property
    def steps(self) -> int:
        """Count the steps up to the last that has a record."""
        return max((r.step + 1 for r in self.records if r.phase != "init"), default=0)

    def values(self, record: Record) -> npt.NDArray[np.generic] | None:
        """Return the whole tensor of a record, or None where it is not kept or numpy lacks it."""
        tensor = record.tensor
        if tensor is None or tensor.file is None or tensor.dtype not in DTYPES:
            return None
        flat = np.fromfile(self.folder / tensor.file, dtype=DTYPES[tensor.dtype])
        return flat.reshape(tensor.shape)


def read(path: str | Path) -> Trace:
    """Read a trace.

    Args:
        path: its folder.

    Raises:
        TraceError: no trace, one of another version, or a line that is damaged and not the last.

    Spec: R30.3
    """
    folder = Path(path)
    file = folder / RECORDS
    if not file.is_file():
        message = f"trace: expected a folder with {RECORDS}, got {folder}"
        raise TraceError(message)
    texts = file.read_text(encoding="utf-8").splitlines(keepends=True)
    lines = [_parsed(file, number, text, len(texts)) for number, text in enumerate(texts, 1)]
    about, *rest = [line for line in lines if line is not None] or [{}]
    if (about.get("format"), about.get("version")) != (FORMAT, VERSION):
        found = f"{about.get('format')} {about.get('version')}"
        message = f"trace: expected {FORMAT} {VERSION} in {file}, got {found}"
        raise TraceError(message)
    try:
        records = [from_json(line) for line in rest if "end" not in line]
    except (KeyError, TypeError, ValueError) as error:
        message = f"trace: expected records in {file}, got one without {error}"
        raise TraceError(message) from error
    return Trace(folder, about, records, complete=any("end" in line for line in rest))


def _parsed(file: Path, number: int, text: str, count: int) -> dict[str, Any] | None:
    """Read one line; the last one may have been cut off, and is None then."""
    try:
        line = json.loads(text)
    except json.JSONDecodeError as error:
        if number == count and not text.endswith("\n"):
            return None
        message = f"trace: expected JSON in {file}, line {number}, got {text[:40]!r}"
        raise TraceError(message) from error
    if not isinstance(line, dict):
        message = f"trace: expected an object in {file}, line {number}, got {text[:40]!r}"
        raise TraceError(message)
    return line
