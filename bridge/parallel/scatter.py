"""Split the arguments of a step into one shard per device."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from bridge.parallel.devices import as_devices
from bridge.parallel.leaves import tensors
from bridge.parallel.tree import children, move, rebuild

Sizes = list[tuple[str, int]]


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
        TypeError: something that holds samples, but cannot be split.

    Spec: R1.1, R1.2, R1.3, R1.4, R1.5, R1.6. Source: torch/nn/parallel/scatter_gather.py
    """
    places = as_devices("scatter", devices)
    return _shards(inputs, batch_size(inputs, dim, verb="scatter"), places, dim)


def scatter_kwargs(
    inputs: Any,  # noqa: ANN401 - any tree
    kwargs: Mapping[str, Any],
    devices: Sequence[str | torch.device],
    dim: int = 0,
) -> tuple[list[Any], list[dict[str, Any]]]:
    """Split positional and keyword arguments together, into as many shards of both.

    They are one batch: what is split in either has the same number of samples, and what has none
    goes to every shard. So no replica is called with some of its arguments missing.

    Args:
        inputs: a tuple of positional arguments, which may be empty; or the one argument.
        kwargs: the keyword arguments by their names.
        devices: where the shards go, in order.
        dim: the dimension that counts samples.

    Returns:
        The shards of ``inputs`` and those of ``kwargs``, as ``parallel_apply`` takes them.

    Raises:
        ValueError: no device, nothing to split, an empty batch, or batches of different sizes.
        TypeError: something that holds samples, but cannot be split.

    Spec: R1.7. Source: torch/nn/parallel/scatter_gather.py
    """
    verb, named = "scatter_kwargs", dict(kwargs)
    places = as_devices(verb, devices)
    sizes = _sizes(inputs, "inputs", dim, verb) + _sizes(named, "kwargs", dim, verb)
    count = _agreed(sizes, verb)
    return _shards(inputs, count, places, dim), _shards(named, count, places, dim)


def batch_size(
    inputs: object, dim: int = 0, *, verb: str = "batch_size", name: str = "inputs"
) -> int:
    """Count the samples of nested arguments; every tensor and list must agree.

    Raises:
        ValueError: nothing to count, an empty batch, or batches of different sizes.
        TypeError: something that holds samples, but cannot be split.

    Spec: R1.4, R1.5, R1.6
    """
    return _agreed(_sizes(inputs, name, dim, verb), verb)


def _agreed(sizes: Sizes, verb: str) -> int:
    """Take the one size that all agree on."""
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


def _sizes(value: object, path: str, dim: int, verb: str) -> Sizes:
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
    parts = children(value, path)
    if parts is None and _holds_samples(value):
        expected = f"{path} to be a tensor, a list, a tuple, a dict or a plain value"
        message = f"{verb}: expected {expected}, got {type(value).__name__}"
        raise TypeError(message)
    return [size for part_path, part in parts or [] for size in _sizes(part, part_path, dim, verb)]


def _holds_samples(leaf: object) -> bool:
    """Tell whether a leaf would take the whole batch to every shard: an array, a set, an object."""
    if isinstance(leaf, str | bytes | type | nn.Module):
        return False
    held = getattr(leaf, "__dict__", {}).values()
    return isinstance(leaf, Iterable) or any(map(tensors, held))


def _shards(tree: object, count: int, places: Sequence[torch.device], dim: int) -> list[Any]:
    """Cut a tree of ``count`` samples into its shards, each on its device."""
    size = -(-count // len(places))
    return [
        move(_part(tree, start, min(size, count - start), dim), place)
        for start, place in zip(range(0, count, size), places, strict=False)
    ]


def _part(value: Any, start: int, length: int, dim: int) -> Any:  # noqa: ANN401 - any tree
    """Cut the samples ``start`` to ``start + length`` out of a tree."""
    if isinstance(value, torch.Tensor):
        return value.narrow(dim, start, length)
    if isinstance(value, list):
        return rebuild(value, value[start : start + length])
    parts = children(value, "")
    if parts is None:
        return value
    return rebuild(value, [_part(part, start, length, dim) for _, part in parts])
