"""Writes a check for a terminal, or for a file of 80 columns."""

import io

from rich.console import Console

from bridge.check.result import Result
from bridge.trace import text as outcomes

WIDTH = 80


def show(result: Result, console: Console | None = None) -> None:
    """Print the verdict, the preflight, the first divergence, its values and the diagnosis."""
    console = console or Console()
    outcome = result.outcome
    if outcome is None or outcome.reason != result.reason:
        line = f"{result.verdict}: {result.reason}"
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    for finding in result.findings:
        line = f"Preflight {finding.severity}: {finding.what}: {finding.message}"
        console.print(line, markup=False, highlight=False)
    if outcome is not None:
        outcomes.show(outcome, console)
    if result.values is not None:
        found = result.values
        line = f"Largest difference at {list(found.index)}: {found.reference!r} in the reference, "
        line += f"{found.port!r} in the port; {found.ulps:.4g} ulp"
        console.print(line, markup=False, highlight=False)
    for sentence in result.diagnosis:
        console.print(f"Looks like: {sentence}", markup=False, highlight=False)
    for text in result.details:
        console.print(text, soft_wrap=True, markup=False, highlight=False)


def render(result: Result) -> str:
    """Return what :func:`show` prints, in 80 columns.

    Spec: R34.4
    """
    file = io.StringIO()
    show(result, Console(file=file, width=WIDTH))
    return file.getvalue()
