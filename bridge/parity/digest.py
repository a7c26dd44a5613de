"""Digests of tensors, the same in both languages."""

import hashlib
from collections.abc import Iterable

import torch


def digest(tensors: Iterable[tuple[str, torch.Tensor]]) -> str:
    """Digest named tensors: their names, dtypes, shapes and bytes, in order.

    Args:
        tensors: names and tensors of any device and layout.

    Returns:
        A SHA-256 in hexadecimal digits.

    Spec: R11.1
    """
    state = hashlib.sha256()
    for name, tensor in tensors:
        shape = ",".join(map(str, tensor.shape))
        state.update(f"{name}\0{dtype_name(tensor.dtype)}\0{shape}\0".encode())
        state.update(raw_bytes(tensor))
    return state.hexdigest()


def raw_bytes(tensor: torch.Tensor) -> memoryview:
    """View the bytes of a tensor in row-major order (a copy where its layout is another)."""
    if not tensor.numel():
        return memoryview(bytearray())  # what is empty may have strides that view refuses
    flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return memoryview(flat.numpy())


def dtype_name(dtype: torch.dtype) -> str:
    """Name a dtype as both languages do: ``float32``, ``int64`` and so on."""
    return str(dtype).removeprefix("torch.")
