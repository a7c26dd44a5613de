"""What the header of a safetensors file says of one tensor, and whether that can be."""

from dataclasses import dataclass
from typing import Any, NoReturn

import torch

from bridge.checkpoint.checkpoint_error import CheckpointError

DTYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "I16": torch.int16,
    "I32": torch.int32,
    "I64": torch.int64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}
"""The dtypes that PyTorch and TorchSharp share."""

Pairs = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Entry:
    """One tensor: its name, its dtype, its shape, and where its bytes begin and end in the data."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


def read_entry(key: str, value: object, name: str) -> Entry:
    """Read what is said of one tensor."""
    pairs = once(value, name) if isinstance(value, tuple) else ()
    if sorted(member for member, _ in pairs) != ["data_offsets", "dtype", "shape"]:
        refuse(f"dtype, shape and data_offsets of '{key}'", name, "other JSON")
    members = dict(pairs)
    dtype, shape, offsets = members["dtype"], members["shape"], members["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        got = f"'{dtype}'" if isinstance(dtype, str) else "other JSON"
        refuse(f"one of {', '.join(DTYPES)} as dtype of '{key}'", name, got)
    if not _whole(shape):
        refuse(f"whole numbers from 0 as shape of '{key}'", name, "others")
    if not _whole(offsets) or len(offsets) != 2:  # noqa: PLR2004 - begin and end
        refuse(f"two whole numbers from 0 as data_offsets of '{key}'", name, "others")
    _check_size(key, DTYPES[dtype], shape, offsets, name)
    return Entry(key, DTYPES[dtype], tuple(shape), *offsets)


def _whole(value: object) -> bool:
    """Tell whether a value is a list of whole numbers of 63 bits."""
    return isinstance(value, list) and all(
        isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 2**63 for item in value
    )


def _check_size(
    key: str, dtype: torch.dtype, shape: list[int], offsets: list[int], name: str
) -> None:
    """Compare shape and dtype with the number of bytes, without an overflow."""
    bytes_ = reach = itemsize(dtype)
    for size in shape:
        bytes_ *= size
        # Strides grow by the sizes that are not 0, also where there is no element.
        reach *= max(size, 1)
        if reach >= 2**63:
            refuse(f"less than 2**63 bytes of '{key}'", name, f"shape {shape}")
    begin, end = offsets
    if end - begin != bytes_:
        refuse(f"{bytes_} bytes of '{key}'", name, f"offsets {begin} to {end}")


def once(pairs: Pairs, name: str) -> Pairs:
    """Refuse names that are there twice."""
    seen = set()
    for key, _ in pairs:
        if key in seen:
            refuse("every name once", name, f"'{key}' twice")
        seen.add(key)
    return pairs


def refuse(expected: str, name: str, got: str) -> NoReturn:
    """Say what a file should have had."""
    message = f"safetensors: expected {expected} in {name}, got {got}"
    raise CheckpointError(message)


def itemsize(dtype: torch.dtype) -> int:
    """Return the bytes of one element."""
    return torch.empty(0, dtype=dtype).element_size()


def sound(tensor: torch.Tensor) -> bool:
    """Tell whether booleans have the bytes 0 and 1; with others PyTorch calculates anything."""
    return tensor.dtype != torch.bool or not bool((tensor.view(torch.uint8) > 1).any())
