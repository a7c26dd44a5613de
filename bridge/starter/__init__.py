"""Writes the starter of ``bridge init``: a reference, a port, and what checks them."""

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

FILES = (
    "reference.py",
    "Port/Port.csproj",
    "Port/Mlp.cs",
    "port.toml",
    "test_port.py",
    ".github/workflows/parity.yml",
)


def init(folder: Path) -> list[Path]:
    """Write the starter.

    Args:
        folder: where to; it is made, or must be empty.

    Returns:
        The files that were written.

    Raises:
        ValueError: there is something in the folder.

    Spec: R34.6
    """
    if folder.exists() and any(folder.iterdir()):
        message = f"init: expected an empty folder, got {folder}"
        raise ValueError(message)
    loader = PackageLoader("bridge.starter", "")
    environment = Environment(  # noqa: S701 - these are no pages
        loader=loader, undefined=StrictUndefined, keep_trailing_newline=True
    )
    library = Path(__file__).parents[2] / "csharp" / "BridgeSharp" / "BridgeSharp.csproj"
    written = []
    for name in FILES:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        template = environment.get_template(f"{Path(name).name}.j2")
        file.write_text(template.render(library=library.as_posix()), encoding="utf-8")
        written.append(file)
    return written
