"""The tensors of nested arguments, taken out and put back."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from bridge.parallel.tree import children, rebuild


def tensors(tree: object) -> list[torch.Tensor]:
    """List every tensor of a tree, in order."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    return [leaf for _, part in children(tree, "") or [] for leaf in tensors(part)]


def with_tensors(tree: Any, leaves: Iterable[torch.Tensor]) -> Any:  # noqa: ANN401 - any tree
    """Make the same tree with other tensors, in order."""
    return _filled(tree, iter(leaves))


def _filled(tree: Any, leaves: Iterator[torch.Tensor]) -> Any:  # noqa: ANN401 - any tree
    """Fill a tree from an iterator."""
    if isinstance(tree, torch.Tensor):
        return next(leaves)
    parts = children(tree, "")
    return tree if parts is None else rebuild(tree, [_filled(part, leaves) for _, part in parts])
