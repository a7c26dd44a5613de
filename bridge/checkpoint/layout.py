"""What a safetensors file says before its data."""

import json
from collections.abc import Mapping

import torch

from bridge.checkpoint.entry import DTYPES, itemsize
from bridge.checkpoint.header import LIMIT
from bridge.parity.digest import dtype_name

NAMES = {dtype: name for name, dtype in DTYPES.items()}
ALIGNMENT = 8


def check_text(text: object, what: str) -> None:
    """Refuse what is no text that UTF-8 can write."""
    if not isinstance(text, str):
        message = f"safetensors: expected text as {what}, got {type(text).__name__}"
        raise TypeError(message)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"safetensors: expected text as {what}, got half of a pair of surrogates"
        raise ValueError(message) from error


def check(name: str, tensor: torch.Tensor) -> None:
    """Refuse what the format cannot hold."""
    check_text(name, "name")
    if name == "__metadata__":
        message = "safetensors: expected another name than '__metadata__', got it for a tensor"
        raise ValueError(message)
    dense = isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided
    if not dense or tensor.is_meta or tensor.is_quantized:
        message = f"safetensors: expected a dense tensor with values as '{name}', got another"
        raise ValueError(message)
    if tensor.dtype not in NAMES:
        expected = ", ".join(map(dtype_name, NAMES))
        message = (
            f"safetensors: expected one of {expected} for '{name}', got {dtype_name(tensor.dtype)}"
        )
        raise ValueError(message)


def content(
    tensors: Mapping[str, torch.Tensor], order: list[str], metadata: Mapping[str, str]
) -> bytes:
    """Write the start of a file: the length of the header, and the header, padded with spaces."""
    ends, end = {}, 0
    for name in order:
        end += tensors[name].numel() * itemsize(tensors[name].dtype)
        ends[name] = end
    members: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    for name, tensor in tensors.items():
        members[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [ends[name] - tensor.numel() * itemsize(tensor.dtype), ends[name]],
        }
    header = json.dumps(members, separators=(",", ":")).encode()
    header += b" " * (-len(header) % ALIGNMENT)
    if len(header) > LIMIT:
        message = f"safetensors: expected a header of at most {LIMIT} bytes, got {len(header)}"
        raise ValueError(message)
    return len(header).to_bytes(8, "little") + header
