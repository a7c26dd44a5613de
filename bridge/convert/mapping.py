"""Files of names and new names."""

from pathlib import Path
from typing import Any

from bridge.checkpoint.json_text import parse_json


def read_mapping(path: Path) -> list[tuple[str, str]]:
    """Read names and new names from a file of TOML, or of JSON where it is called so.

    A name with points that is not in quotes is a table of TOML, and counts as that name.

    Raises:
        ValueError: other content.
        FileNotFoundError: no such file.
        ImportError: a Python 3.10 without the package tomli, and a file of TOML.

    Spec: R29.3
    """
    text = path.read_text(encoding="utf-8")
    parsed = parse_json(text) if path.suffix.lower() == ".json" else _toml(text)
    if not isinstance(parsed, tuple):
        message = f"convert: expected names and new names in {path.name}, got other content"
        raise ValueError(message)  # noqa: TRY004 - a file's content
    return list(_flat(parsed, "", path.name))


def _flat(pairs: Any, start: str, file: str) -> list[tuple[str, str]]:  # noqa: ANN401 - what was parsed
    """Join the keys of tables."""
    found: list[tuple[str, str]] = []
    for key, value in pairs:
        if isinstance(value, str):
            found.append((start + key, value))
        elif isinstance(value, tuple):
            found += _flat(value, f"{start}{key}.", file)
        else:
            message = f"convert: expected a new name for '{start}{key}' in {file}, got {value!r}"
            raise ValueError(message)  # noqa: TRY004 - a file's content
    return found


def _toml(text: str) -> Any:  # noqa: ANN401 - what was parsed
    """Read TOML, with what this Python has for it."""
    try:
        import tomllib as toml  # noqa: PLC0415 - Python 3.11 has it
    except ImportError:
        try:
            import tomli as toml  # noqa: PLC0415
        except ImportError:
            message = "convert: expected Python 3.11, the package tomli or a map in JSON, got none"
            raise ImportError(message) from None
    try:
        return _pairs(toml.loads(text))
    except toml.TOMLDecodeError as error:
        message = f"convert: expected TOML, got {error}"
        raise ValueError(message) from None


def _pairs(value: Any) -> Any:  # noqa: ANN401 - any TOML
    """Turn tables into pairs."""
    return tuple((k, _pairs(v)) for k, v in value.items()) if isinstance(value, dict) else value
