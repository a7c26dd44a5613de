"""Split the arguments of a step into one shard per device."""

from collections.abc import Sequence
from typing import Any

import torch

from bridge.parallel.devices import as_devices
from bridge.parallel.tree import children, move, rebuild


def scatter(
    inputs: Any,  # noqa: ANN401 - any tree
    devices: Sequence[str | torch.device],
    dim: int = 0,
) -> list[Any]:
    """Split nested arguments into one shard per device, in the sizes of ``torch.chunk``.

    Tensors are split along ``dim``; a list is a list of samples and is split by sample; tuples,
    dicts, named tuples and dataclasses are split part by part; numbers, strings and None go to
    every shard. Fewer samples than devices give fewer shards.

    Args:
        inputs: a tensor ``(N, *)``, a list of N samples, or a tree of them.
        devices: where the shards go, in order.
        dim: the dimension that counts samples.

    Returns:
        One tree per shard; its tensors are views of ``inputs`` where the device is the same.

    Raises:
        ValueError: no device, nothing to split, an empty batch, or batches of different sizes.

    Spec: R1.1, R1.2, R1.3, R1.4, R1.5. Source: torch/nn/parallel/scatter_gather.py
    """
    places = as_devices("scatter", devices)
    count = batch_size(inputs, dim, verb="scatter")
    size = -(-count // len(places))
    starts = range(0, count, size)
    return [
        move(_part(inputs, start, min(size, count - start), dim), place)
        for start, place in zip(starts, places, strict=False)
    ]


def batch_size(inputs: object, dim: int = 0, *, verb: str = "batch_size") -> int:
    """Count the samples of nested arguments; every tensor and list must agree.

    Raises:
        ValueError: nothing to count, an empty batch, or batches of different sizes.

    Spec: R1.4, R1.5
    """
    sizes = _sizes(inputs, "inputs", dim, verb)
    if not sizes:
        message = f"{verb}: expected at least 1 tensor or list of samples, got none"
        raise ValueError(message)
    first_path, first = sizes[0]
    for path, size in sizes:
        if size != first:
            expected = f"{path} to have the batch size of {first_path}, {first}"
            message = f"{verb}: expected {expected}, got {size}"
            raise ValueError(message)
    if first == 0:
        message = f"{verb}: expected at least 1 sample, got 0 in {first_path}"
        raise ValueError(message)
    return first


def _sizes(value: object, path: str, dim: int, verb: str) -> list[tuple[str, int]]:
    """List the batch size of every tensor and list of samples with its path."""
    if isinstance(value, torch.Tensor):
        if not -value.dim() <= dim < value.dim():
            message = (
                f"{verb}: expected {path} to have a dimension {dim}, got shape {tuple(value.shape)}"
            )
            raise ValueError(message)
        return [(path, value.shape[dim])]
    if isinstance(value, list):
        return [(path, len(value))]
    parts = children(value, path) or []
    return [size for part_path, part in parts for size in _sizes(part, part_path, dim, verb)]


def _part(value: Any, start: int, length: int, dim: int) -> Any:  # noqa: ANN401 - any tree
    """Cut the samples ``start`` to ``start + length`` out of a tree."""
    if isinstance(value, torch.Tensor):
        return value.narrow(dim, start, length)
    if isinstance(value, list):
        return value[start : start + length]
    parts = children(value, "")
    if parts is None:
        return value
    return rebuild(value, [_part(part, start, length, dim) for _, part in parts])
