"""Tensors in shared memory: where each lies, and the copies in and out."""

import math
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import torch

ALIGNMENT = 64
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
    )
}


class Layout:
    """A place for every tensor of some nested arguments.

    Args:
        verb: the operation that an error names.

    Attributes:
        size: the bytes that all of them take.
    """

    def __init__(self, verb: str) -> None:
        """Start with nothing placed."""
        self.size = 0
        self._verb = verb
        self._placed: list[tuple[dict[str, Any], torch.Tensor]] = []

    def tree(self, value: object) -> dict[str, Any]:
        """Describe nested arguments, and place their tensors.

        Args:
            value: tensors, numpy arrays, numbers, text or None, in any nest of tuples, lists and
                dicts.

        Raises:
            ValueError: anything else.
        """
        if isinstance(value, torch.Tensor | np.ndarray):
            return {"tensor": self.place(value)}
        if isinstance(value, dict):
            return {"dict": {self._key(key): self.tree(item) for key, item in value.items()}}
        if isinstance(value, tuple | list):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {kind: [self.tree(item) for item in value]}
        return self._scalar(value)

    def place(self, value: object) -> dict[str, Any]:
        """Place one tensor or numpy array.

        Returns:
            Its ``dtype``, ``shape`` and ``offset``.
        """
        # The copy is one that torch accepts: writable, without negative strides.
        tensor = torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value
        if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided:
            self._refuse("a dense tensor or a numpy array", type(value).__name__)
        dtype = str(tensor.dtype).removeprefix("torch.")
        if dtype not in DTYPES:
            self._refuse(f"a tensor of {', '.join(DTYPES)}", dtype)
        place = {"dtype": dtype, "shape": list(tensor.shape), "offset": self.size}
        self._placed.append((place, tensor))
        taken = tensor.numel() * tensor.element_size()
        self.size += -(-taken // ALIGNMENT) * ALIGNMENT
        return place

    def write(self, memory: memoryview) -> None:
        """Copy every placed tensor into the memory."""
        with torch.no_grad():
            for place, tensor in self._placed:
                view(memory, place).copy_(tensor)

    def _key(self, key: object) -> str:
        """Check a key of a dict."""
        if not isinstance(key, str):
            self._refuse("text as the key of a dict", type(key).__name__)
        return key

    def _scalar(self, value: object) -> dict[str, Any]:
        """Describe a plain value; JSON has no sign for a number that is not finite."""
        plain = value.item() if isinstance(value, np.generic) else value
        if plain is not None and not isinstance(plain, int | float | str):
            self._refuse("tensors, arrays, numbers, text or None", type(plain).__name__)
        if isinstance(plain, float) and not math.isfinite(plain):
            return {"number": str(plain).replace("nan", "NaN").replace("inf", "Infinity")}
        return {"value": plain}

    def _refuse(self, expected: str, actual: str) -> NoReturn:
        """Raise the error about an argument."""
        message = f"{self._verb}: expected {expected}, got {actual}"
        raise ValueError(message)


def view(memory: memoryview, place: Mapping[str, Any]) -> torch.Tensor:
    """Return a tensor that lies in the memory (an alias)."""
    shape, dtype = place["shape"], DTYPES[place["dtype"]]
    count = math.prod(shape)
    if count == 0:  # frombuffer refuses it
        return torch.empty(shape, dtype=dtype)
    flat = torch.frombuffer(memory, dtype=dtype, count=count, offset=place["offset"])
    return flat.view(shape)
