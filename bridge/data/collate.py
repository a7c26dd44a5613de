"""Samples, stacked into a batch."""

from typing import Any

import numpy as np
import torch
from torch.utils.data import default_collate

from bridge.parallel.gather import describe
from bridge.parallel.tree import children, rebuild

Sample = tuple[str, Any]


def stack(samples: list[Sample]) -> Any:  # noqa: ANN401 - any tree
    """Stack what samples have at one place; each comes with its path.

    Raises:
        TypeError: samples that are not alike, or that cannot be stacked.

    Spec: R17.4, R17.5. Source: torch/utils/data/_utils/collate.py
    """
    samples = [(path, _as_tensor(value)) for path, value in samples]
    first_path, first = samples[0]
    for path, value in samples:
        if describe(value) != describe(first):
            expected = f"{path} to be like {first_path}, {describe(first)}"
            message = f"Loader: expected {expected}, got {describe(value)}"
            message = f"{message}; collate list keeps samples as they are"
            raise TypeError(message)
    if isinstance(first, torch.Tensor | bool | int | float | str):
        return default_collate([value for _, value in samples])
    rows = [children(value, path) for path, value in samples]
    if rows[0] is None or isinstance(first, list):
        expected = f"tensors, numbers, strings, tuples or dicts at {first_path}"
        message = f"Loader: expected {expected}, got {describe(first)}"
        raise TypeError(message)
    columns = zip(*(row or [] for row in rows), strict=True)
    return rebuild(first, [stack(list(column)) for column in columns])


def _as_tensor(value: Any) -> Any:  # noqa: ANN401 - any value
    """Take arrays and numbers of NumPy as tensors."""
    return torch.as_tensor(value) if isinstance(value, np.ndarray | np.generic) else value
