"""Join the outputs of the replicas into one batch."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from bridge.parallel.devices import as_devices
from bridge.parallel.tree import Children, children, rebuild


def gather(
    outputs: Sequence[Any],
    device: str | torch.device = "cpu",
    dim: int = 0,
) -> Any:  # noqa: ANN401 - any tree
    """Join the outputs of the replicas, in their order, on one device.

    Tensors are concatenated along ``dim``; scalar tensors and numbers become one tensor ``(k,)``,
    whatever ``dim``; tuples, lists, dicts, named tuples and dataclasses are joined part by part,
    dicts by their keys; None stays None. Gradients flow back to every replica.

    Args:
        outputs: one tree per replica, all of one structure.
        device: where the result lives.
        dim: the dimension that counts samples.

    Returns:
        One fresh tree.

    Raises:
        ValueError: no outputs, outputs of different structures, tensors of different dtypes, of
            shapes that do not fit, or without the dimension.
        TypeError: a leaf that cannot be joined.

    Spec: R2.1, R2.2, R2.3, R2.4. Source: torch/nn/parallel/scatter_gather.py
    """
    if not outputs:
        message = "gather: expected at least 1 output, got 0"
        raise ValueError(message)
    (place,) = as_devices("gather", [device])
    return _join(list(outputs), "outputs", place, dim)


def _join(values: list[Any], path: str, device: torch.device, dim: int) -> Any:  # noqa: ANN401
    """Join the values that the replicas have at one place."""
    first = values[0]
    rows = [_aligned(value, first, path) for value in values]
    for index, (value, row) in enumerate(zip(values, rows, strict=True)):
        if _kind(value) != _kind(first) or _labels(row) != _labels(rows[0]):
            expected = f"{path} of replica {index} to be like replica 0's, {describe(first)}"
            message = f"gather: expected {expected}, got {describe(value)}"
            raise ValueError(message)
    if isinstance(first, torch.Tensor):
        return _concatenated(values, path, device, dim)
    if first is None:
        return None
    if isinstance(first, bool | int | float):
        return torch.tensor(values, dtype=_number_type(first), device=device)
    if rows[0] is None:
        message = f"gather: expected tensors, numbers or None at {path}, got {describe(first)}"
        raise TypeError(message)
    columns = zip(*([part for _, part in row or []] for row in rows), strict=True)
    labels = _labels(rows[0])
    parts = [_join(list(c), label, device, dim) for label, c in zip(labels, columns, strict=True)]
    return rebuild(first, parts)


def _concatenated(
    tensors: list[torch.Tensor], path: str, device: torch.device, dim: int
) -> torch.Tensor:
    """Concatenate tensors, which must be of one dtype and fit; scalars are stacked."""
    first = tensors[0]
    if first.dim() and not -first.dim() <= dim < first.dim():
        shape = tuple(first.shape)
        message = f"gather: expected {path} to have a dimension {dim}, got shape {shape}"
        raise ValueError(message)
    for index, tensor in enumerate(tensors):
        expected = f"gather: expected {path} of replica {index} to have replica 0's"
        if tensor.dtype != first.dtype:
            dtypes = [str(one.dtype).removeprefix("torch.") for one in (first, tensor)]
            message = f"{expected} dtype, {dtypes[0]}, got {dtypes[1]}"
            raise ValueError(message)
        if _rest(tensor, dim) != _rest(first, dim):
            shapes = [tuple(one.shape) for one in (first, tensor)]
            message = f"{expected} shape but along dimension {dim}, {shapes[0]}, got {shapes[1]}"
            raise ValueError(message)
    moved = [tensor.to(device) for tensor in tensors]
    return torch.cat(moved, dim) if first.dim() else torch.stack(moved)


def _rest(tensor: torch.Tensor, dim: int) -> list[int]:
    """List the sizes that must agree: all but the one along ``dim``."""
    return [size for i, size in enumerate(tensor.shape) if i != dim % tensor.dim()]


def _aligned(value: object, first: object, path: str) -> Children | None:
    """List the parts of a container; those of a dict in the order of replica 0's keys."""
    if isinstance(value, Mapping) and isinstance(first, Mapping) and value.keys() == first.keys():
        value = {key: value[key] for key in first}
    return children(value, path)


def _labels(parts: Children | None) -> list[str]:
    """List the paths of the parts of a container; a leaf has none."""
    return [label for label, _ in parts or []]


def _kind(value: object) -> object:
    """Name what must agree between replicas: the type, and whether a tensor is a scalar."""
    return ("tensor", value.dim() == 0) if isinstance(value, torch.Tensor) else type(value)


def _number_type(value: float) -> torch.dtype:
    """Choose the dtype of gathered numbers: what Python's own number holds."""
    if isinstance(value, bool):
        return torch.bool
    return torch.int64 if isinstance(value, int) else torch.float64


def describe(value: object) -> str:
    """Say what a value is, for an error."""
    if value is None:
        return "None"
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    name, parts = type(value).__name__, children(value, "")
    if isinstance(value, Mapping):
        return f"{name} of {list(value)}"
    return (
        name if parts is None or not isinstance(value, tuple | list) else f"{name} of {len(parts)}"
    )
