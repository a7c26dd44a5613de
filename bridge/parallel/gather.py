"""Join the outputs of the replicas into one batch."""

from collections.abc import Sequence
from typing import Any

import torch

from bridge.parallel.tree import children, rebuild


def gather(
    outputs: Sequence[Any],
    device: str | torch.device = "cpu",
    dim: int = 0,
) -> Any:  # noqa: ANN401 - any tree
    """Join the outputs of the replicas, in their order, on one device.

    Tensors are concatenated along ``dim``; scalar tensors and numbers become one tensor ``(k,)``;
    tuples, lists, dicts, named tuples and dataclasses are joined part by part; None stays None.
    Gradients flow back to every replica.

    Args:
        outputs: one tree per replica, all of one structure.
        device: where the result lives.
        dim: the dimension that counts samples.

    Returns:
        One fresh tree.

    Raises:
        ValueError: no outputs, or outputs of different structures.
        TypeError: a leaf that cannot be joined.

    Spec: R2.1, R2.2, R2.3. Source: torch/nn/parallel/scatter_gather.py
    """
    if not outputs:
        message = "gather: expected at least 1 output, got 0"
        raise ValueError(message)
    return _join(list(outputs), "outputs", torch.device(device), dim)


def _join(values: list[Any], path: str, device: torch.device, dim: int) -> Any:  # noqa: ANN401
    """Join the values that the replicas have at one place."""
    first = values[0]
    labels = _labels(first, path)
    for index, value in enumerate(values):
        if _kind(value) != _kind(first) or _labels(value, path) != labels:
            message = (
                f"gather: expected {path} of replica {index} to be like replica 0's, "
                f"{_describe(first)}, got {_describe(value)}"
            )
            raise ValueError(message)
    if isinstance(first, torch.Tensor):
        moved = [value.to(device) for value in values]
        return torch.stack(moved) if first.dim() == 0 else torch.cat(moved, dim)
    if first is None:
        return None
    if isinstance(first, bool | int | float):
        return torch.tensor(values, dtype=_number_type(first), device=device)
    if labels is None:
        message = f"gather: expected tensors, numbers or None at {path}, got {_describe(first)}"
        raise TypeError(message)
    rows = [[part for _, part in children(value, path) or []] for value in values]
    columns = zip(*rows, strict=True)
    parts = [_join(list(c), label, device, dim) for label, c in zip(labels, columns, strict=True)]
    return rebuild(first, parts)


def _labels(value: object, path: str) -> list[str] | None:
    """List the paths of the parts of a container, or None for a leaf."""
    parts = children(value, path)
    return None if parts is None else [label for label, _ in parts]


def _kind(value: object) -> object:
    """Name what must agree between replicas: the type, and whether a tensor is a scalar."""
    return ("tensor", value.dim() == 0) if isinstance(value, torch.Tensor) else type(value)


def _number_type(value: float) -> torch.dtype:
    """Choose the dtype of gathered numbers: what Python's own number holds."""
    if isinstance(value, bool):
        return torch.bool
    return torch.int64 if isinstance(value, int) else torch.float64


def _describe(value: object) -> str:
    """Say what a value is, for an error."""
    if value is None:
        return "None"
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    name = type(value).__name__
    if isinstance(value, dict):
        return f"{name} of {list(value)}"
    return f"{name} of {len(value)}" if isinstance(value, tuple | list) else name
