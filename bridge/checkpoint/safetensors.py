"""Files of named tensors in the safetensors format, which plain tools open."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import torch

from bridge.checkpoint.atomic import replacing
from bridge.checkpoint.entry import itemsize, refuse, sound
from bridge.checkpoint.header import LIMIT, Header, parse
from bridge.checkpoint.layout import check, check_text, content
from bridge.parity.digest import raw_bytes

SEAL = "bridge_sha256"
"""The text of the metadata that holds the digest of the file, in which it counts as zeros."""
UNSEALED = "0" * 64


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
        check(name, tensor)
    for text in (*metadata, *metadata.values()):
        check_text(text, "metadata")
    order = sorted(tensors, key=lambda name: -itemsize(tensors[name].dtype))
    start = content(tensors, order, metadata)
    digest = hashlib.sha256(start)
    with replacing(path) as file:
        file.write(start)
        for name in order:
            values = raw_bytes(tensors[name])
            digest.update(values)
            file.write(values)
        if metadata.get(SEAL) == UNSEALED:
            file.seek(start.index(_seal(UNSEALED)))
            file.write(_seal(digest.hexdigest()))


def head(file: IO[bytes], name: str) -> tuple[bytes, Header]:
    """Read the start of a file, up to its data: the bytes, and what they say."""
    length = os.fstat(file.fileno()).st_size
    start = file.read(8)
    if len(start) < 8:  # noqa: PLR2004 - the length of the header takes 8 bytes
        refuse("at least 8 bytes", name, f"{len(start)}")
    stated = int.from_bytes(start, "little")
    if stated > LIMIT:
        refuse(f"a header of at most {LIMIT} bytes", name, f"{stated}")
    header = file.read(stated)
    if len(header) < stated:
        refuse(f"a header of {stated} bytes", name, f"{len(header)}")
    return start + header, parse(header, length - 8 - stated, name)


def values(
    file: IO[bytes], header: Header, name: str, digest: "hashlib._Hash | None" = None
) -> dict[str, torch.Tensor]:
    """Read the data of a file, each byte once, straight into the tensors."""
    tensors = {entry.name: torch.empty(entry.shape, dtype=entry.dtype) for entry in header.entries}
    for entry in sorted(header.entries, key=lambda entry: (entry.begin, entry.end)):
        place = raw_bytes(tensors[entry.name])
        if file.readinto(place) != len(place):  # type: ignore[attr-defined]
            refuse(f"{len(place)} bytes of '{entry.name}'", name, "less")
        if digest:
            digest.update(place)
        if not sound(tensors[entry.name]):
            refuse(f"bytes 0 and 1 as booleans of '{entry.name}'", name, "others")
    return tensors


def unsealed(start: bytes, metadata: Mapping[str, str]) -> bytes:
    """Put zeros in the place of the digest, as it was calculated."""
    return start.replace(_seal(metadata[SEAL]), _seal(UNSEALED))


def _seal(digest: str) -> bytes:
    """Write the digest as the header has it: once, because quotes inside of texts are escaped."""
    return f'"{SEAL}":"{digest}"'.encode()
