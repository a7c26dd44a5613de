"""The formats of weights: found by content, chosen by extension."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bridge.checkpoint import (
    as_state_dict,
    load,
    load_file,
    load_metadata,
    read,
    save,
    save_file,
    write,
)
from bridge.checkpoint.archive import LEGACY, ZIP
from bridge.checkpoint.header import LIMIT
from bridge.convert.torchsharp_file import load_torchsharp, save_torchsharp

EXTENSIONS = {
    ".pt": "torch",
    ".pth": "torch",
    ".safetensors": "safetensors",
    ".dat": "torchsharp",
}
READERS: Mapping[str, Callable[[str], Any]] = {
    "torch": load,
    "safetensors": load_file,
    "torchsharp": load_torchsharp,
    "tree": read,
}


def detect(path: str | os.PathLike[str]) -> str:
    """Tell the format of a file by its content: torch, safetensors, tree or torchsharp.

    Raises:
        CheckpointError: a safetensors file that is damaged.
        FileNotFoundError: no such file.

    Spec: R29.1
    """
    with Path(path).open("rb") as file:
        start = file.read(9)
    if start[:4] in {ZIP, LEGACY}:
        return "torch"
    if start[8:] == b"{" and int.from_bytes(start[:8], "little") <= LIMIT:
        return "tree" if "bridge_tree" in load_metadata(path) else "safetensors"
    return "torchsharp"


def format_for(path: str | os.PathLike[str], kind: str | None = None) -> str:
    """Choose the format to write: the one that is given, else by the extension of the file.

    Raises:
        ValueError: an extension that says nothing, or no such format.

    Spec: R29.1
    """
    if kind is None:
        extension = Path(path).suffix.lower()
        if extension not in EXTENSIONS:
            listed = ", ".join(EXTENSIONS)
            message = f"convert: expected a format, or an extension of {listed}, got '{extension}'"
            raise ValueError(message)
        return EXTENSIONS[extension]
    if kind not in READERS:
        message = f"convert: expected a format of {', '.join(READERS)}, got '{kind}'"
        raise ValueError(message)
    return kind


def read_state(path: str | os.PathLike[str], part: str | None = None) -> Any:  # noqa: ANN401 - any tree
    """Read a file of any of the formats, or a part of it.

    Args:
        path: the file.
        part: keys and indices with ``/`` between them, such as ``optimizers/0``; None is the
            ``model`` of a training checkpoint, and the whole of another file.

    Returns:
        The tree, with fresh tensors on the CPU.

    Raises:
        CheckpointError: the file is damaged, or none of these.
        ValueError: no such part.
        FileNotFoundError: no such file.

    Spec: R29.1
    """
    kind = detect(path)
    value = READERS[kind](os.fspath(path))
    if part is None:
        return (
            value["model"]
            if kind == "tree" and isinstance(value, dict) and "model" in value
            else value
        )
    for key in part.split("/"):
        value = _inside(value, key, part)
    return value


def write_state(state: Any, path: str | os.PathLike[str], kind: str) -> None:  # noqa: ANN401 - any tree
    """Write names and tensors in any of the formats, other trees as torch or tree.

    Raises:
        ValueError, TypeError: what the format cannot hold.
        OSError: the file cannot be written; the old one is whole.

    Spec: R29.1
    """
    if kind == "torch":
        save(state, path)
    elif kind == "tree":
        write({"model": state} if is_flat(state) else state, path)
    else:
        tensors = as_state_dict(state)
        save_file(tensors, path) if kind == "safetensors" else save_torchsharp(tensors, path)


def is_flat(state: object) -> bool:
    """Tell whether a tree is names and tensors."""
    try:
        as_state_dict(state)
    except TypeError:
        return False
    return True


def _inside(value: Any, key: str, part: str) -> Any:  # noqa: ANN401 - any tree
    """Take one step into a tree."""
    if isinstance(value, dict):
        for own in value:
            if str(own) == key:
                return value[own]
        got = ", ".join(map(str, value))
    elif isinstance(value, list | tuple):
        if key.isdecimal() and int(key) < len(value):
            return value[int(key)]
        got = f"{len(value)} items"
    else:
        got = "no parts"
    message = f"convert: expected '{key}' of part '{part}', got {got}"
    raise ValueError(message)
