"""Nested arguments: tuples, lists, dicts, named tuples and dataclasses of tensors."""

import copy
import dataclasses
from collections.abc import Mapping, MutableMapping, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

Children = list[tuple[str, Any]]


def children(value: object, path: str) -> Children | None:
    """List the parts of a container with their paths, or None where the value is a leaf."""
    if isinstance(value, PackedSequence):
        return None
    if isinstance(value, Mapping):
        return [(f"{path}[{key!r}]", item) for key, item in value.items()]
    if isinstance(value, tuple | list):
        names = getattr(value, "_fields", None)
        labels = [f".{n}" for n in names] if names else [f"[{i}]" for i in range(len(value))]
        return [(path + label, item) for label, item in zip(labels, value, strict=True)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type | nn.Module):
        return [(f"{path}.{name}", getattr(value, name)) for name in _names(value)]
    return None


def rebuild(value: Any, parts: Sequence[Any]) -> Any:  # noqa: ANN401 - any container
    """Make a container of the same type as ``value`` with other parts."""
    if isinstance(value, Mapping):
        return _with_items(value, dict(zip(value, parts, strict=True)))
    if isinstance(value, tuple):
        return value._make(parts) if hasattr(value, "_make") else type(value)(parts)
    if isinstance(value, list):
        twin = copy.copy(value)
        twin[:] = parts
        return twin
    # Neither __init__ nor __post_init__ runs: they were for the whole.
    twin = object.__new__(type(value))
    for name, part in zip(_names(value), parts, strict=True):
        object.__setattr__(twin, name, part)
    return twin


def _with_items(value: Any, items: Mapping[Any, Any]) -> Any:  # noqa: ANN401 - any mapping
    """Copy a mapping, with what it has beside its items, and give it other values."""
    if not isinstance(value, MutableMapping):
        return type(value)(items)
    twin = copy.copy(value)
    for key, item in items.items():
        twin[key] = item
    return twin


def _names(value: Any) -> list[str]:  # noqa: ANN401 - any dataclass
    """List what a dataclass holds: its fields, and what it has beside them but no caches."""
    fields = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
    return fields + [
        name
        for name in getattr(value, "__dict__", {})
        if name not in fields and not isinstance(getattr(type(value), name, None), cached_property)
    ]


def move(value: Any, device: torch.device) -> Any:  # noqa: ANN401 - any tree
    """Bring every tensor of a tree to a device; other leaves stay as they are."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    parts = children(value, "")
    return value if parts is None else rebuild(value, [move(part, device) for _, part in parts])
