"""The commands ``bridge check`` and ``bridge init``."""

import json
import os
from pathlib import Path
from typing import Optional

import typer


def check(
    file: Path = typer.Argument(Path("port.toml"), help="What to check; docs/check.md tells how."),
    strict: bool = typer.Option(False, "--strict", help="Exit with 1 for equivalent too."),  # noqa: FBT001
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),  # noqa: FBT001
    junit: Optional[Path] = typer.Option(None, show_default=False, help="Write JUnit's XML here."),  # noqa: UP045
    html: Optional[Path] = typer.Option(None, show_default=False, help="Write a page here."),  # noqa: UP045
) -> None:
    """Train a Python module and its C# port, and name the first thing that differs.

    Exit code 0: identical or equivalent. 1: diverged. 2: incomparable, or bad usage.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from bridge.check import check as run  # noqa: PLC0415 - torch takes a second
    from bridge.check import files, text  # noqa: PLC0415
    from bridge.dotnet import DotnetError  # noqa: PLC0415

    try:
        result = run(file)
    except (DotnetError, ValueError, OSError, ImportError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    if as_json:
        typer.echo(json.dumps(result.to_json(), indent=1))
    else:
        text.show(result)
    if junit is not None:
        files.junit(result, junit, strict=strict)
    if html is not None:
        files.html(result, html)
    raise typer.Exit(result.exit_code(strict=strict))


def init(folder: Path = typer.Argument(Path(), help="An empty folder, or a new one.")) -> None:
    """Write a starter: a Python reference, a C# port, port.toml, a test and a CI workflow."""
    from bridge.starter import init as write  # noqa: PLC0415 - jinja2 takes a moment

    try:
        written = write(folder)
    except (OSError, ValueError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    for file in written:
        typer.echo(file)
