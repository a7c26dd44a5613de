"""Writes the comparison of two traces for a terminal, or for a file of 80 columns."""

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bridge.trace.finding import Finding
from bridge.trace.outcome import Divergence, Outcome, where

SHOWN = 10


def save(outcome: Outcome, file: Path, findings: Sequence[Finding] = ()) -> None:
    """Write the outcome as JSON, with what it looks like."""
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {**outcome.to_json(), "findings": [item.to_json() for item in findings]}
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def show(
    outcome: Outcome, console: Console | None = None, findings: Sequence[Finding] = ()
) -> None:
    """Print verdict, first divergence, root causes, findings, and what was not observed."""
    console = console or Console()
    console.print(f"{outcome.verdict}: {outcome.reason}", soft_wrap=True, markup=False)
    equal, count = f"{outcome.bit_equal:,}", f"{outcome.records:,}"
    console.print(f"Rule {outcome.rule}; {equal} of {count} records have the same bits.")
    if outcome.cause is not None:
        _detail(outcome.cause, console)
    for item in findings:
        _finding(item, console)
    if outcome.divergences:
        console.print(_table(outcome))
    for title, lines in (("Not observed", outcome.unobserved), ("Configuration", outcome.notes)):
        for line in lines[:SHOWN]:
            console.print(f"{title}: {line}", markup=False, highlight=False)
        if len(lines) > SHOWN:
            console.print(f"{title}: {len(lines) - SHOWN:,} more")


def _detail(divergence: Divergence, console: Console) -> None:
    """Print the root cause, with its place in the code of both sides."""
    console.print(f"Root cause: {where(divergence.record)}", markup=False, highlight=False)
    distance = divergence.distance
    if distance is not None:
        about = "" if distance.exact else f", between {distance.low:.3g} and {distance.high:.3g}"
        console.print(
            f"  difference {distance.norm:.3g}{about}; "
            f"relative {distance.relative:.3g}; {distance.ulp:.3g} ulp"
        )
    for side, record in (("reference", divergence.reference), ("port", divergence.port)):
        if record is not None and record.at is not None:
            console.print(f"  {side}: {record.at}", soft_wrap=True, markup=False, highlight=False)


def _finding(item: Finding, console: Console) -> None:
    """Print what a fault looks like."""
    sure = f"{item.confidence:.0%}"
    text = f"Looks like {item.name} ({sure}): {item.sentence}" if item.confidence else item.sentence
    console.print(text, markup=False, highlight=False)
    console.print(f"  at {item.where}", markup=False, highlight=False)
    for side, at in (("reference", item.reference), ("port", item.port)):
        if at is not None:
            console.print(f"  {side}: {at}", soft_wrap=True, markup=False, highlight=False)


def _table(outcome: Outcome) -> Table:
    """List the first divergences; those whose inputs are identical have a star."""
    table = Table("", "where", "what", "relative", "ulp")
    for item in outcome.divergences[:SHOWN]:
        numbers = ["", ""]
        if item.distance is not None:
            numbers = [f"{item.distance.relative:.1e}", f"{item.distance.ulp:.3g}"]
        noise = " (noise)" if item.noise else ""
        table.add_row("*" * item.root, where(item.record), item.fault + noise, *numbers)
    if len(outcome.divergences) > SHOWN:
        table.caption = f"{len(outcome.divergences) - SHOWN:,} more; * marks root causes"
    return table
