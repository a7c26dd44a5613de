"""Writes the matrix: Markdown, HTML and JSON."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bridge.conformance.cases import KINDS
from bridge.conformance.known import Known, find
from bridge.conformance.measure import VERDICTS, Aspect
from bridge.conformance.run import IGNORED, Row
from bridge.parity import palette

_SHOWN = 3
_LONG = 160


@dataclass(frozen=True)
class Line:
    """A row as a reader sees it.

    Attributes:
        row: the row.
        known: what explains it.
    """

    row: Row
    known: Known | None

    @property
    def verdict(self) -> str:
        """The verdict in words, with the measured ulps."""
        if self.row.verdict == "within ulps":
            return f"within {self.row.ulp:.3g} ulp"
        return self.row.verdict

    @property
    def details(self) -> list[str]:
        """What differs, in both sides' values, the first few of it."""
        if self.row.message:
            return [_cut(self.row.message)]
        odd = [aspect for aspect in self.row.aspects if aspect.verdict != "same bits"]
        told = [f"{a.name}: {_cut(a.python)} | {_cut(a.csharp)}{_ulps(a)}" for a in odd[:_SHOWN]]
        rest = len(odd) - _SHOWN
        return [*told, f"and {rest} more"] if rest > 0 else told


@dataclass(frozen=True)
class Matrix:
    """All rows of a run, and where it took place.

    Attributes:
        rows: the rows, in the order in which they ran.
        known: the known differences.
        facts: versions, build family, CPU and the like, to show.
        seconds: how long the cases took.
        stale: known differences that explain no row, where all cases ran.
    """

    rows: list[Row]
    known: list[Known]
    facts: Mapping[str, str]
    seconds: float = 0.0
    stale: list[Known] = field(default_factory=list)

    def lines(self, kind: str) -> list[Line]:
        """List the rows of a kind, with what explains them."""
        return [Line(row, find(self.known, row)) for row in self.rows if row.kind == kind]

    @property
    def kinds(self) -> list[str]:
        """The kinds that have rows."""
        return [kind for kind in KINDS if any(row.kind == kind for row in self.rows)]

    def counts(self, kind: str | None = None) -> dict[str, int]:
        """Count the rows by verdict, of one kind or of all."""
        found = Counter(row.verdict for row in self.rows if kind in (None, row.kind))
        return {verdict: found[verdict] for verdict in VERDICTS}


def write(matrix: Matrix, folder: Path) -> list[Path]:
    """Write ``CONFORMANCE.md``, ``conformance.html`` and ``conformance.json``.

    Args:
        matrix: what a run found.
        folder: where the files go; made where it does not exist.

    Returns:
        The paths of the three.

    Spec: R31.7
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = ("CONFORMANCE.md", "conformance.html", "conformance.json")
    page, html, data = (folder / name for name in names)
    page.write_text(_render("conformance.md.j2", matrix), encoding="utf-8")
    html.write_text(_render("conformance.html.j2", matrix), encoding="utf-8")
    data.write_text(json.dumps(strict(matrix), indent=1) + "\n", encoding="utf-8")
    return [page, html, data]


def strict(matrix: Matrix) -> dict[str, Any]:
    """Turn a matrix into what JSON can hold; an infinite difference is null."""
    rows = [_plain(line) for kind in matrix.kinds for line in matrix.lines(kind)]
    counts = {kind: matrix.counts(kind) for kind in matrix.kinds}
    facts = dict(matrix.facts)
    stale = [asdict(entry) for entry in matrix.stale]
    total = {"total": matrix.counts(), **counts}
    return {"facts": facts, "counts": total, "stale": stale, "rows": rows}


def _plain(line: Line) -> dict[str, Any]:
    """Turn a row into what JSON can hold."""
    row: dict[str, Any] = {"id": line.row.id, **asdict(line.row)}
    for aspect in row["aspects"]:
        aspect["ulp"] = None if aspect["ulp"] == float("inf") else aspect["ulp"]
    return {**row, "known": None if line.known is None else asdict(line.known)}


def _render(name: str, matrix: Matrix) -> str:
    """Fill a template."""
    here = Path(__file__).parent
    environment = Environment(
        loader=FileSystemLoader([here, here.parent / "parity"]),
        autoescape=name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = _cell
    colours = {"light": palette.LIGHT, "dark": palette.DARK}
    return environment.get_template(name).render(
        matrix=matrix, verdicts=VERDICTS, ignored=IGNORED, **colours
    )


def _cell(text: str) -> str:
    """Write a text so that a cell of a Markdown table holds it."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;").replace("\n", " ")


def _cut(text: str) -> str:
    """Cut a long text."""
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"


def _ulps(aspect: Aspect) -> str:
    """Write the difference in ulps, where it is one of rounding."""
    return f" ({aspect.ulp:.3g} ulp)" if aspect.verdict == "within ulps" else ""
