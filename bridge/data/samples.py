"""What a loader reads from."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from bridge.data.collate import stack
from bridge.parallel.gather import describe
from bridge.parallel.scatter import batch_size
from bridge.parallel.tree import children, rebuild

Read = Callable[[torch.Tensor], Any]


def source(dataset: Any, collate: str) -> tuple[int, Read]:  # noqa: ANN401 - see R17.4
    """Count the samples of a data set, and make the function that reads a batch of them.

    Raises:
        TypeError: not a data set.
        ValueError: no samples, tensors and lists of different lengths, or nothing to collate.

    Spec: R17.4, R17.5
    """
    if collate not in {"stack", "list"}:
        message = f"Loader: expected collate stack or list, got {collate}"
        raise ValueError(message)
    if isinstance(dataset, torch.Tensor | tuple | Mapping):
        count = batch_size(dataset, verb="Loader", name="dataset")
        read, kind = partial(_select, dataset), "tensors"
    elif hasattr(dataset, "__len__") and hasattr(dataset, "batch"):
        count, read, kind = len(dataset), dataset.batch, "batches"
    elif hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__"):
        one_by_one = _stacked if collate == "stack" else _listed
        count, read, kind = len(dataset), partial(one_by_one, dataset), "samples"
    else:
        message = f"Loader: expected a data set with a length, got {describe(dataset)}"
        raise TypeError(message)
    if collate == "list" and kind != "samples":
        message = f"Loader: expected a sequence of samples to collate as a list, got {kind}"
        raise ValueError(message)
    if count == 0:
        message = "Loader: expected at least 1 sample, got 0 in dataset"
        raise ValueError(message)
    return count, read


def _select(value: Any, indices: torch.Tensor) -> Any:  # noqa: ANN401 - any tree
    """Take samples out of a tree of tensors and lists; what is neither goes to every batch."""
    if isinstance(value, torch.Tensor):
        return value[indices]
    if isinstance(value, list):
        return rebuild(value, [value[index] for index in indices.tolist()])
    parts = children(value, "")
    return value if parts is None else rebuild(value, [_select(part, indices) for _, part in parts])


def _listed(dataset: Sequence[Any], indices: torch.Tensor) -> list[Any]:
    """Read samples one by one, and keep them as they are."""
    return [dataset[index] for index in indices.tolist()]


def _stacked(dataset: Sequence[Any], indices: torch.Tensor) -> Any:  # noqa: ANN401 - any tree
    """Read samples one by one, and stack them."""
    return stack([(f"dataset[{index}]", dataset[index]) for index in indices.tolist()])
