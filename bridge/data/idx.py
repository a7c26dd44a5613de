"""IDX files, the format of MNIST and its relatives."""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
import torch

UNSIGNED_BYTE = 0x08
GZIP = b"\x1f\x8b"


class IdxError(ValueError):
    """A file that is not the IDX file that was expected; the message names the file."""


def read_idx(path: Path) -> torch.Tensor:
    """Read an IDX file of unsigned bytes, gzipped or not.

    Args:
        path: the file; gzip is recognized by its content.

    Returns:
        A fresh uint8 tensor of the shape that the file states.

    Raises:
        IdxError: bad magic, another element type, damaged gzip, or another length than stated.
        FileNotFoundError: no such file.

    Spec: R10.1, R10.2. Source: http://yann.lecun.com/exdb/mnist/
    """
    content = _content(path)
    _check_magic(content, path.name)
    start = 4 + 4 * content[3]
    _check_length(content, start, path.name)
    shape = [int.from_bytes(content[i : i + 4], "big") for i in range(4, start, 4)]
    whole = start + math.prod(shape)
    if len(content) != whole:
        stated = "x".join(map(str, shape))
        message = f"read_idx: expected {whole} bytes in {path.name} ({stated}), got {len(content)}"
        raise IdxError(message)
    values = np.frombuffer(bytearray(content), np.uint8, offset=start)
    return torch.from_numpy(values).reshape(shape)


def _check_magic(content: bytes, name: str) -> None:
    """Refuse what does not start as an IDX file of unsigned bytes does."""
    _check_length(content, 4, name)
    if content[:2] != b"\0\0":
        message = f"read_idx: expected magic 0000 in {name}, got {content[:2].hex()}"
        raise IdxError(message)
    if content[2] != UNSIGNED_BYTE:
        message = f"read_idx: expected unsigned bytes (08) in {name}, got {content[2]:02x}"
        raise IdxError(message)


def _check_length(content: bytes, header: int, name: str) -> None:
    """Refuse a file that ends within its header."""
    if len(content) < header:
        message = f"read_idx: expected a header of {header} bytes in {name}, got {len(content)}"
        raise IdxError(message)


def _content(path: Path) -> bytes:
    """Read a file, unpacked where it is gzip."""
    raw = path.read_bytes()
    if raw[:2] != GZIP:
        return raw
    try:
        content = gzip.decompress(raw)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(raw, path.name) from error
    # The last word states the length; .NET does not notice where the end is cut off.
    if int.from_bytes(raw[-4:], "little") != len(content) % 2**32:
        raise _damaged(raw, path.name)
    return content


def _damaged(raw: bytes, name: str) -> IdxError:
    """Say that gzip data is not whole."""
    return IdxError(f"read_idx: expected whole gzip data in {name}, got {len(raw)} damaged bytes")
