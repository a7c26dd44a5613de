"""IDX files, the format of MNIST and its relatives."""

import gzip
import zlib
from pathlib import Path

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
    if len(content) < 4 or content[:2] != b"\0\0":  # noqa: PLR2004 - the magic has 4 bytes
        message = f"read_idx: expected magic 0000 in {path.name}, got {content[:2].hex()}"
        raise IdxError(message)
    if content[2] != UNSIGNED_BYTE:
        message = f"read_idx: expected unsigned bytes (08) in {path.name}, got {content[2]:02x}"
        raise IdxError(message)
    rank = content[3]
    start = 4 + 4 * rank
    head = [content[i : i + 4] for i in range(4, start, 4)]
    shape = [int.from_bytes(word, "big") for word in head]
    count = 1
    for size in shape:
        count *= size
    if len(content) != start + count:
        stated = "x".join(map(str, shape))
        message = (
            f"read_idx: expected {start + count} bytes in {path.name} ({stated}), "
            f"got {len(content)}"
        )
        raise IdxError(message)
    values = torch.frombuffer(bytearray(content), dtype=torch.uint8, offset=start)
    return values.reshape(shape)


def _content(path: Path) -> bytes:
    """Read a file, unpacked where it is gzip."""
    raw = path.read_bytes()
    if raw[:2] != GZIP:
        return raw
    try:
        return gzip.decompress(raw)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        message = f"read_idx: expected whole gzip data in {path.name}, got: {error}"
        raise IdxError(message) from error
