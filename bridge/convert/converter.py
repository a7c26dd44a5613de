"""Weights from one file to another."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from bridge.checkpoint import as_state_dict
from bridge.checkpoint.document import PREFIX, encode
from bridge.convert.formats import format_for, is_flat, read_state, write_state
from bridge.convert.likeness import match
from bridge.convert.names import rename
from bridge.convert.plan import Plan, Row, row_of
from bridge.parity.digest import dtype_name

DTYPES = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}


def convert(  # noqa: PLR0913, PLR0917 - as many as the command has options
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    kind: str | None = None,
    part: str | None = None,
    names: Sequence[tuple[str, str]] = (),
    strip: str | None = None,
    prefix: str | None = None,
    like: str | os.PathLike[str] | None = None,
    dtype: str | None = None,
    dry_run: bool = False,  # noqa: FBT001, FBT002 - named by every caller
    force: bool = False,  # noqa: FBT001, FBT002
) -> Plan:
    """Move weights from one file to another, with other names, another format or dtype.

    Args:
        source: the file to read, of any format.
        target: the file to write.
        kind: its format: torch, safetensors, torchsharp or tree; None goes by its extension.
        part: what to take of the source, such as ``optimizers/0``.
        names: names and new names, with ``*`` for any text.
        strip: the prefix that names lose, before they are mapped.
        prefix: the prefix that names get, after they are mapped.
        like: a file whose names and shapes the target must have.
        dtype: what floating-point tensors become; others stay.
        dry_run: whether nothing is written.
        force: whether a target that is there is replaced.

    Returns:
        The rows, and what did not match; then nothing was written.

    Raises:
        ValueError, TypeError: bad usage, or a file that is damaged or cannot hold the weights.
        FileNotFoundError: no such file.
        OSError: the target cannot be written; the old one is whole.

    Spec: R29.1, R29.3, R29.4, R29.5, R29.6
    """
    written_as = format_for(target, kind)
    if dtype is not None and dtype not in DTYPES:
        message = f"convert: expected a dtype of {', '.join(DTYPES)}, got '{dtype}'"
        raise ValueError(message)
    if not Path(target).absolute().parent.is_dir():
        message = f"convert: expected a folder for {target}, got none"
        raise ValueError(message)
    if Path(target).exists() and not force:
        message = f"convert: expected no file {target}, or --force to replace it, got one"
        raise ValueError(message)
    state = read_state(source, part)
    if is_flat(state):
        new = rename(state, names, strip, prefix)
        expected = None if like is None else as_state_dict(read_state(like))
        plan, state = _placed(as_state_dict(state), new, expected, dtype and DTYPES[dtype])
    else:
        changed = names or strip or prefix or like is not None or dtype is not None
        plan = _whole(state, written_as, changed=bool(changed))
    if dry_run or plan.faults:
        return plan
    write_state(state, target, written_as)
    return replace(plan, written=True)


def _placed(
    tensors: dict[str, torch.Tensor],
    new: dict[str, str],
    like: dict[str, torch.Tensor] | None,
    dtype: Any,  # noqa: ANN401 - a dtype or None
) -> tuple[Plan, dict[str, torch.Tensor]]:
    """Give each tensor its name, and its dtype."""
    old = {renamed: name for name, renamed in new.items()}
    cast = {renamed: _cast(tensors[name], dtype) for name, renamed in new.items()}
    rows, faults = {name: row_of(name, name, cast[name]) for name in cast}, list[str]()
    if like is not None:
        rows, faults = match(cast, like)
    placed = {name: cast[row.source] for name, row in rows.items()}
    notes = [_told(row, tensors[old[row.source]], cast[row.source]) for row in rows.values()]
    listed = [replace(row, source=old[row.source]) for row in notes]
    return Plan(listed, faults), placed


def _cast(tensor: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    """Change the dtype of numbers with a fraction."""
    return tensor if dtype is None or not tensor.is_floating_point() else tensor.to(dtype)


def _told(row: Row, before: torch.Tensor, after: torch.Tensor) -> Row:
    """Say what the new dtype did."""
    if before.dtype == after.dtype:
        return row
    lost = int((torch.isinf(after) & ~torch.isinf(before)).sum())
    notes = [
        row.note,
        f"from {dtype_name(before.dtype)}",
        f"{lost} became infinite" if lost else "",
    ]
    return replace(row, note=", ".join(filter(None, notes)))


def _whole(state: Any, kind: str, *, changed: bool) -> Plan:  # noqa: ANN401 - any tree
    """Take a tree as it is, where the format can hold it."""
    if changed or kind not in {"torch", "tree"}:
        held = ", ".join(map(str, state)) if isinstance(state, dict) else type(state).__name__
        what = "to rename or cast" if changed else f"for the format {kind}"
        message = f"convert: expected names and tensors {what}, got a tree of {held}: choose a part"
        raise ValueError(message)
    _, tensors = encode(state)
    texts = [(name.removeprefix(PREFIX), tensor) for name, tensor in tensors.items()]
    return Plan([row_of(name, name, tensor) for name, tensor in texts])
