"""Runs the conformance matrix from the command line."""

import json
import time
import warnings
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from bridge.conformance import known as catalogue
from bridge.conformance.cases import load
from bridge.conformance.measure import VERDICTS
from bridge.conformance.report import Line, Matrix, strict, write
from bridge.conformance.run import Sides
from bridge.dotnet import start
from bridge.parity import family
from bridge.parity.machine import describe, versions

_WIDTH = 80


def conformance(
    kinds: tuple[str, ...], only: str | None, output: Path | None, *, as_json: bool, threads: int
) -> None:
    """Run TorchSharp against PyTorch, case by case, and show or write the matrix.

    Args:
        kinds: which kinds of cases; none means all.
        only: a pattern of names; None means all.
        output: the folder for the reports; None writes none.
        as_json: print JSON in place of the table.
        threads: of both sides.

    Raises:
        ValueError: no such kind, or no case of such a name.
        DotnetError: C# does not start.

    Spec: R31.7
    """
    cases = load(kinds, only)
    torch.set_num_threads(threads)
    sides = Sides(start)
    try:
        facts = _facts(sides, threads)
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # A case may use what PyTorch advises against.
            rows = list(sides.rows(cases))
        seconds = time.perf_counter() - begun
    finally:
        sides.close()
    entries = catalogue.load()
    whole = not kinds and only is None
    stale = catalogue.stale(entries, rows) if whole else []
    matrix = Matrix(rows, entries, {**facts, "cases": str(len(cases))}, seconds, stale)
    paths = [] if output is None else write(matrix, output)
    if as_json:
        print(json.dumps(strict(matrix), indent=1))  # noqa: T201 - what was asked for
    else:
        _show(matrix, paths, few=not whole)


def _facts(sides: Sides, threads: int) -> dict[str, str]:
    """Say where the run took place: versions, build family, CPU."""
    sides_versions = versions(sides.host)
    python, csharp = sides_versions["python"], sides_versions["csharp"]
    same = family.compare(sides.host, threads)
    equal = sum(same.values())
    builds = "one" if equal == len(same) else "two: bits cannot be equal everywhere"
    return {
        "PyTorch": f"{python['torch']}, Python {python['python']}",
        "TorchSharp": f"{csharp['torchsharp']}, libtorch {csharp['libtorch']}, {csharp['dotnet']}",
        "build family": f"{builds} ({equal} of {len(same)} operations give the same bits)",
        "machine": f"{describe()['cpu']}, {threads} thread(s)",
    }


def _show(matrix: Matrix, paths: list[Path], *, few: bool) -> None:
    """Print the counts by kind; of a part of the cases also each row that differs."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH)
    for name, value in matrix.facts.items():
        console.print(f"{name:<14}{value}", markup=False)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("kind")
    for verdict in VERDICTS:
        table.add_column(verdict, justify="right")
    for kind in matrix.kinds:
        table.add_row(kind, *(str(count or "") for count in matrix.counts(kind).values()))
    table.add_row("all", *(str(count or "") for count in matrix.counts().values()), style="bold")
    console.print(table)
    for line in [line for kind in matrix.kinds for line in matrix.lines(kind)] if few else []:
        if line.row.verdict != "same bits":
            _tell(console, line)
    for entry in matrix.stale:
        text = f"known, but not found any more: {', '.join(entry.rows)}: {entry.hint}"
        console.print(text, markup=False)
    console.print(f"{len(matrix.rows)} rows in {matrix.seconds:.1f} s")
    for path in paths:
        console.print(f"written: {path}", markup=False, soft_wrap=True)


def _tell(console: Console, line: Line) -> None:
    """Print a row that differs: what, the hint, and the remedy."""
    console.print(f"\n{line.row.id}: {line.verdict}", markup=False)
    hints = [] if line.known is None else [line.known.hint, line.known.remedy]
    for text in (*line.details, *filter(None, hints)):
        console.print(f"  {text}", markup=False)
