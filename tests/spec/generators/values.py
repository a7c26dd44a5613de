"""Tensors as JSON, and digests of arrays."""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch


def values(tensor: torch.Tensor) -> Any:  # noqa: ANN401 - lists of any depth
    """Write a tensor as nested lists of the shortest decimals."""
    if tensor.dim() > 0:
        return [values(part) for part in tensor.detach()]
    value = tensor.item()
    if tensor.dtype != torch.float32:
        return value
    short = float(str(np.float32(value)))
    if np.float32(short) != value:
        message = f"values: expected a decimal that gives {value!r}, got {short!r}"
        raise ValueError(message)
    return short


def sha256(tensors: Iterable[tuple[str, torch.Tensor]]) -> str:
    """Digest named tensors as R11.1 has it."""
    state = hashlib.sha256()
    for name, tensor in tensors:
        array = tensor.detach().numpy()
        sizes = ",".join(map(str, array.shape))
        state.update(f"{name}\0{array.dtype}\0{sizes}\0".encode() + array.tobytes("C"))
    return state.hexdigest()
