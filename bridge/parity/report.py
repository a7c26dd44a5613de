"""Write what a parity run found: for machines, for a reader, and as a picture."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from bridge.parity import palette, wording

_WIDE, _NARROW = 940, 420
_FILTERS = ("count", "duration", "magnitude", "plain", "ratio", "share", "steps", "ulps", "verdict")


def write(report: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write `report.json`, `curves.png` and `report.html`, each of them whole or not at all.

    Args:
        report: what a run found, as `report.schema.json` describes it; a float that is not
            finite may be the float itself or its name.
        folder: where the files go; made where it does not exist.

    Returns:
        The paths of the three files, the page first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page, picture, data = (folder / name for name in ("report.html", "curves.png", "report.json"))
    report = strict(report)
    _replace(data, json.dumps(report, indent=2, allow_nan=False).encode() + b"\n")
    # Imported only now: matplotlib takes a second, and the data is already safe.
    from bridge.parity import plots  # noqa: PLC0415

    _replace(picture, plots.png(report, width=_WIDE))
    charts = {
        name: plots.svg(report, width=width, prefix=name)
        for name, width in (("wide", _WIDE), ("narrow", _NARROW))
    }
    _replace(page, _template().render(report=report, charts=charts).encode())
    return [page, picture, data]


def strict(report: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a report into what JSON can hold: floats that are not finite become their names."""
    return {key: _strict(value) for key, value in report.items()}


def _strict(value: object) -> object:
    """Copy one value of a report."""
    if isinstance(value, Mapping):
        return strict(value)
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    return wording.named(value) if isinstance(value, float) else value


def _template() -> Template:
    """Read the page's template, with the words of this package as filters."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {name: getattr(wording, name) for name in _FILTERS}
    environment.globals |= {"rules": wording.RULES, "light": palette.LIGHT, "dark": palette.DARK}
    return environment.get_template("report.html.j2")


def _replace(path: Path, content: bytes) -> None:
    """Write a file under another name first, so that no reader ever sees a part of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
