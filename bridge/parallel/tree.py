"""Nested arguments: tuples, lists, dicts, named tuples and dataclasses of tensors."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch

Children = list[tuple[str, Any]]


def children(value: object, path: str) -> Children | None:
    """List the parts of a container with their paths, or None where the value is a leaf."""
    if isinstance(value, dict):
        return [(f"{path}[{key!r}]", item) for key, item in value.items()]
    if isinstance(value, tuple | list):
        names = getattr(value, "_fields", None)
        labels = [f".{n}" for n in names] if names else [f"[{i}]" for i in range(len(value))]
        return [(path + label, item) for label, item in zip(labels, value, strict=True)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value)]
        return [(f"{path}.{name}", getattr(value, name)) for name in fields]
    return None


def rebuild(value: Any, parts: Sequence[Any]) -> Any:  # noqa: ANN401 - any container
    """Make a container of the same type as ``value`` with other parts."""
    if isinstance(value, dict):
        pairs = zip(value, parts, strict=True)
        return type(value)(pairs) if type(value) is dict else _copy_dict(value, pairs)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*parts)
    if isinstance(value, tuple | list):
        return type(value)(parts)
    names = [field.name for field in dataclasses.fields(value)]
    return dataclasses.replace(value, **dict(zip(names, parts, strict=True)))


def _copy_dict(value: Any, pairs: Any) -> Any:  # noqa: ANN401 - any mapping
    """Copy a dict of a subclass, such as a default dict, with other values."""
    copy = value.copy()
    copy.update(pairs)
    return copy


def move(value: Any, device: torch.device) -> Any:  # noqa: ANN401 - any tree
    """Bring every tensor of a tree to a device; other leaves stay as they are."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    parts = children(value, "")
    return value if parts is None else rebuild(value, [move(part, device) for _, part in parts])
