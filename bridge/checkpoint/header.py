"""The header of a safetensors file, and whether its data can be so."""

from dataclasses import dataclass

from bridge.checkpoint.entry import Entry, Pairs, once, read_entry, refuse
from bridge.checkpoint.json_text import parse_json

LIMIT = 100_000_000
"""The longest header in bytes, as in the safetensors library."""


@dataclass(frozen=True)
class Header:
    """What a file says: its texts, and its tensors in the order of the header."""

    metadata: dict[str, str]
    entries: tuple[Entry, ...]


def parse(content: bytes, data: int, name: str) -> Header:
    """Read a header strictly.

    Args:
        content: its bytes.
        data: the number of bytes that follow it.
        name: the file's, for errors.

    Raises:
        CheckpointError: no such header, or one that the data cannot have.

    Spec: R26.2. Source: https://huggingface.co/docs/safetensors/index#format
    """
    members = dict(once(_json(content, name), name))
    metadata = _metadata(members.pop("__metadata__", ()), name)
    entries = tuple(read_entry(key, value, name) for key, value in members.items())
    _check_places(entries, data, name)
    return Header(metadata, entries)


def _json(content: bytes, name: str) -> Pairs:
    """Parse the object that a header is."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        refuse("a header in UTF-8", name, "other bytes")
    parsed = parse_json(text) if text.startswith("{") else None
    if not isinstance(parsed, tuple):
        refuse("an object of JSON as header", name, "other text")
    return parsed


def _metadata(value: object, name: str) -> dict[str, str]:
    """Read names and texts."""
    if not isinstance(value, tuple) or not all(isinstance(text, str) for _, text in value):
        refuse("names and strings as __metadata__", name, "other JSON")
    return dict(once(value, name))


def _check_places(entries: tuple[Entry, ...], data: int, name: str) -> None:
    """Let the tensors fill the data, each from the end of the one before."""
    place, before = 0, ""
    for entry in sorted(entries, key=lambda entry: (entry.begin, entry.end)):
        if entry.end > data:
            refuse(f"{entry.end} bytes of data for '{entry.name}'", name, f"{data}")
        if entry.begin < place:
            got = f"'{entry.name}' from {entry.begin}, before '{before}' ends at {place}"
            refuse("tensors apart from each other", name, got)
        if entry.begin > place:
            refuse("no hole", name, f"one from {place} to {entry.begin}")
        place, before = entry.end, entry.name
    if place != data:
        refuse(f"{place} bytes of data", name, f"{data}")
