"""The command ``bridge convert``."""

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Optional

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from bridge.convert.plan import Plan

_WIDE = 1000


def convert(
    source: Path = typer.Argument(..., help="File to read, of any format."),
    target: Path = typer.Argument(..., help="File to write."),
    kind: Optional[str] = typer.Option(
        None,
        "--format",
        show_default=False,
        help="torch, safetensors, torchsharp or tree [default: by the extension of TARGET].",
    ),
    part: Optional[str] = typer.Option(
        None, show_default=False, help="Part of SOURCE, such as optimizers/0 [default: the model]."
    ),
    names: Optional[Path] = typer.Option(
        None,
        "--map",
        show_default=False,
        help="File of TOML or JSON: names and new names, * for any text.",
    ),
    strip: Optional[str] = typer.Option(
        None, show_default=False, help="Prefix that names lose, before the map."
    ),
    prefix: Optional[str] = typer.Option(
        None, show_default=False, help="Prefix that names get, after the map."
    ),
    like: Optional[Path] = typer.Option(
        None, show_default=False, help="File whose names and shapes TARGET must have."
    ),
    dtype: Optional[str] = typer.Option(
        None, show_default=False, help="float16, bfloat16, float32 or float64."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Show, and write nothing."),  # noqa: FBT001
    force: bool = typer.Option(False, "--force", help="Replace TARGET."),  # noqa: FBT001
) -> None:
    """Move weights between formats and languages, with a table of names.

    Exit code 0: all matched. 1: what did not match is listed, nothing is written. 2: bad usage.
    """
    from bridge.convert.converter import convert as run  # noqa: PLC0415 - torch takes a second
    from bridge.convert.mapping import read_mapping  # noqa: PLC0415

    try:
        table = () if names is None else read_mapping(names)
        plan = run(source, target, kind, part, table, strip, prefix, like, dtype, dry_run, force)
    except (ValueError, TypeError, FileNotFoundError, ImportError) as error:
        _fail(error, 2)
    except OSError as error:
        _fail(error, 1)
    _show(plan)
    typer.echo(_verdict(plan, target, dry_run=dry_run))
    raise typer.Exit(1 if plan.faults else 0)


def _show(plan: "Plan") -> None:
    """Print the table, and below it what did not match."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDE)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("source", "target", "shape", "dtype", "note"):
        table.add_column(column, overflow="fold")
    for row in plan.rows:
        table.add_row(row.source, row.target, str(row.shape), row.dtype, row.note)
    console.print(table)
    for fault in plan.faults:
        typer.echo(fault)


def _verdict(plan: "Plan", target: Path, *, dry_run: bool) -> str:
    """Say in one line what was done."""
    if plan.faults:
        return f"not written: {len(plan.faults)} did not match"
    count = len(plan.rows)
    return (
        f"dry run: {count} tensors would go to {target}"
        if dry_run
        else f"{count} tensors to {target}"
    )


def _fail(error: Exception, code: int) -> NoReturn:
    """Say what went wrong, and end."""
    typer.echo(f"error: {error}", err=True)
    raise typer.Exit(code) from None
