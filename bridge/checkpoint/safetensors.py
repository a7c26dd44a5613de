"""Files of named tensors in the safetensors format, which plain tools open."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import torch

from bridge.checkpoint.atomic import replacing
from bridge.checkpoint.checkpoint_error import CheckpointError
from bridge.checkpoint.header import DTYPES, LIMIT, Header, itemsize, parse
from bridge.parity.digest import dtype_name, raw_bytes

NAMES = {dtype: name for name, dtype in DTYPES.items()}
SEAL = "bridge_sha256"
"""The text of the metadata that holds the digest of the file, in which it counts as zeros."""
UNSEALED = "0" * 64
ALIGNMENT = 8


def save_file(
    tensors: Mapping[str, torch.Tensor],
    path: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write named tensors to a safetensors file, in place of the old one as a whole.

    The header keeps the order of the names; the data of larger elements comes first, so that every
    tensor is aligned. Tensors that share storage are written once for each name.

    Args:
        tensors: names and tensors of any device, shape and strides.
        path: the file.
        metadata: names and texts to put beside them.

    Raises:
        ValueError: a dtype that the format does not share with both languages, a tensor without
            values of its own (sparse, quantized, meta), or a name that is taken or no text.
        OSError: the file cannot be written; the old one is whole.

    Spec: R26.1, R26.7. Source: https://huggingface.co/docs/safetensors/index#format
    """
    store(tensors, path, metadata or {})


def load_file(path: str | os.PathLike[str]) -> dict[str, torch.Tensor]:
    """Read the tensors of a safetensors file, whoever made it.

    Args:
        path: the file.

    Returns:
        Names and fresh tensors on the CPU, in the order of the header.

    Raises:
        CheckpointError: the file is not a whole and sound safetensors file.
        FileNotFoundError: no such file.

    Spec: R26.1, R26.2
    """
    with Path(path).open("rb") as file:
        name = Path(path).name
        return values(file, head(file, name)[1], name)


def load_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read the metadata of a safetensors file.

    Args:
        path: the file.

    Returns:
        Names and texts.

    Raises:
        CheckpointError: the file is not a whole and sound safetensors file.
        FileNotFoundError: no such file.

    Spec: R26.1, R26.2
    """
    with Path(path).open("rb") as file:
        return head(file, Path(path).name)[1].metadata


def store(
    tensors: Mapping[str, torch.Tensor],
    path: str | os.PathLike[str],
    metadata: Mapping[str, str],
) -> None:
    """Write tensors and metadata; where the metadata has a place for the digest, fill it."""
    for name, tensor in tensors.items():
        _check(name, tensor)
    for text in (*metadata, *metadata.values()):
        check_text(text, "metadata")
    order = sorted(tensors, key=lambda name: -itemsize(tensors[name].dtype))
    content = _content(tensors, order, metadata)
    digest = hashlib.sha256(content)
    with replacing(path) as file:
        file.write(content)
        for name in order:
            values = raw_bytes(tensors[name])
            digest.update(values)
            file.write(values)
        if metadata.get(SEAL) == UNSEALED:
            file.seek(content.index(_seal(UNSEALED)))
            file.write(_seal(digest.hexdigest()))


def head(file: IO[bytes], name: str) -> tuple[bytes, Header]:
    """Read the start of a file, up to its data: the bytes, and what they say."""
    length = os.fstat(file.fileno()).st_size
    start = file.read(8)
    if len(start) < 8:  # noqa: PLR2004 - the length of the header takes 8 bytes
        message = f"safetensors: expected at least 8 bytes in {name}, got {len(start)}"
        raise CheckpointError(message)
    stated = int.from_bytes(start, "little")
    if stated > LIMIT:
        message = f"safetensors: expected a header of at most {LIMIT} bytes in {name}, got {stated}"
        raise CheckpointError(message)
    content = file.read(stated)
    if len(content) < stated:
        message = f"safetensors: expected a header of {stated} bytes in {name}, got {len(content)}"
        raise CheckpointError(message)
    return start + content, parse(content, length - 8 - stated, name)


def values(
    file: IO[bytes], header: Header, name: str, digest: "hashlib._Hash | None" = None
) -> dict[str, torch.Tensor]:
    """Read the data of a file, each byte once, straight into the tensors."""
    tensors = {
        entry.name: torch.empty(entry.shape, dtype=entry.dtype) for entry in header.entries
    }
    for entry in sorted(header.entries, key=lambda entry: (entry.begin, entry.end)):
        place = raw_bytes(tensors[entry.name])
        if file.readinto(place) != len(place):  # type: ignore[attr-defined]
            message = f"safetensors: expected {len(place)} bytes of '{entry.name}' in {name}, got less"
            raise CheckpointError(message)
        if digest:
            digest.update(place)
        check_flags(tensors[entry.name], entry.name, name)
    return tensors


def check_flags(tensor: torch.Tensor, key: str, name: str) -> None:
    """Refuse bytes that are no boolean, with which PyTorch calculates anything."""
    if tensor.dtype == torch.bool and bool((tensor.view(torch.uint8) > 1).any()):
        message = f"safetensors: expected bytes 0 and 1 as booleans of '{key}' in {name}, got others"
        raise CheckpointError(message)


def unsealed(content: bytes, metadata: Mapping[str, str]) -> bytes:
    """Put zeros in the place of the digest, as it was calculated."""
    return content.replace(_seal(metadata[SEAL]), _seal(UNSEALED))


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


def _check(name: str, tensor: torch.Tensor) -> None:
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
        message = f"safetensors: expected one of {expected} for '{name}', got {dtype_name(tensor.dtype)}"
        raise ValueError(message)


def _content(
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


def _seal(digest: str) -> bytes:
    """Write the digest as the header has it; quotes inside of texts are escaped, so it is there once."""
    return f'"{SEAL}":"{digest}"'.encode()
