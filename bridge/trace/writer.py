"""Writes a trace while the program runs."""

import json
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from bridge.trace.record import Record
from bridge.trace.signs import BUCKETS, ROWS, WIDTH

if TYPE_CHECKING:
    from typing_extensions import Self

FORMAT, VERSION = "bridge trace", 1
RECORDS, TENSORS = "trace.jsonl", "tensors"


class Writer:
    """Writes records to ``trace.jsonl`` in a folder, and whole tensors beside it.

    What was written is on its way to the disk after each call: a program that is killed leaves a
    trace that can be read up to there.

    Args:
        folder: the folder of the trace, made where it is missing; a trace in it is replaced.
        about: what the first line says besides format and version.

    Spec: R30.3
    """

    def __init__(self, folder: str | Path, about: dict[str, Any]) -> None:
        """Begin a trace."""
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        for old in (self._folder / TENSORS).glob("*.bin"):
            old.unlink()
        self._file = (self._folder / RECORDS).open("w", encoding="utf-8", newline="\n")
        self._order = 0
        projections = {"buckets": BUCKETS, "width": WIDTH, "rows": ROWS}
        head = {"format": FORMAT, "version": VERSION, "projections": projections}
        self._line({**head, **about})
        self._file.flush()

    def write(self, records: list[tuple[Record, bytes | None]]) -> None:
        """Write records, with the bytes of those tensors that are kept whole, and number them."""
        for record, content in records:
            numbered = replace(record, order=self._order)
            if content is not None and record.tensor is not None:
                file = f"{TENSORS}/{self._order:08}.bin"
                (self._folder / TENSORS).mkdir(exist_ok=True)
                (self._folder / file).write_bytes(content)
                numbered = replace(numbered, tensor=replace(record.tensor, file=file))
            self._line(numbered.to_json())
            self._order += 1
        self._file.flush()

    def close(self, steps: int) -> None:
        """End the trace; again is harmless."""
        if not self._file.closed:
            self._line({"end": True, "records": self._order, "steps": steps})
            self._file.close()

    def __enter__(self) -> "Self":
        """Return the writer itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file."""
        self._file.close()

    def _line(self, content: dict[str, Any]) -> None:
        """Write one line."""
        self._file.write(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n")
