"""What is known of differences: a hint, and the remedy where there is one."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.conformance.cases import matches
from bridge.conformance.run import Row

FILE = Path(__file__).parent / "known.json"


@dataclass(frozen=True)
class Known:
    """A known difference.

    Attributes:
        rows: patterns of the rows that it explains.
        hint: what TorchSharp does otherwise.
        remedy: what to do instead, empty where nothing helps.
        source: where it was discussed.
    """

    rows: tuple[str, ...]
    hint: str
    remedy: str
    source: str = ""

    def explains(self, row: Row) -> bool:
        """Tell whether it explains a row, which must not be one of the same bits."""
        return row.verdict != "same bits" and any(matches(row.id, part) for part in self.rows)


def load(file: Path = FILE) -> list[Known]:
    """Read the known differences."""
    entries: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return [Known(rows=tuple(entry.pop("rows")), **entry) for entry in entries]


def find(known: Iterable[Known], row: Row) -> Known | None:
    """Find what explains a row; the first entry that does.

    Spec: R31.6
    """
    return next((entry for entry in known if entry.explains(row)), None)


def stale(known: Iterable[Known], rows: list[Row]) -> list[Known]:
    """List the entries that explain no row of a whole run: TorchSharp has changed.

    Spec: R31.6
    """
    return [entry for entry in known if not any(entry.explains(row) for row in rows)]
