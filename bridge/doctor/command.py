"""Runs the doctor from the command line."""

import json
from dataclasses import asdict

import typer

from bridge.doctor.examine import examine
from bridge.doctor.finding import Finding

_MARKS = {"ok": " ", "note": "!", "missing": "x"}
_NAME = 34


def doctor(*, as_json: bool, threads: int) -> int:
    """Look at both sides, print what was found, and say how to mend what is missing.

    Returns:
        0 where it is usable, 1 where something needed is missing.

    Spec: R32.2, R32.5
    """
    found = []
    for finding in examine(threads):
        found.append(finding)
        if not as_json:
            _show(finding)
    missing = [finding.name for finding in found if finding.state == "missing"]
    if as_json:
        usable = {"usable": not missing, "findings": [asdict(finding) for finding in found]}
        typer.echo(json.dumps(usable, indent=1))
    elif missing:
        typer.echo(f"not usable: {', '.join(missing)} missing")
    else:
        typer.echo("usable")
    return 1 if missing else 0


def _show(finding: Finding) -> None:
    """Print one finding, and below it how to mend it."""
    typer.echo(f"{_MARKS[finding.state]} {finding.name:<{_NAME}}{finding.value}")
    if finding.remedy:
        typer.echo(f"  {'':<{_NAME}}-> {finding.remedy}")
