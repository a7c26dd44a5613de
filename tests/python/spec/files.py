"""Writes IDX files."""

from collections.abc import Sequence
from pathlib import Path

import torch


def write_idx(path: Path, values: torch.Tensor) -> None:
    """Write bytes as an IDX file."""
    head = bytes([0, 0, 8, values.dim()])
    sizes = b"".join(size.to_bytes(4, "big") for size in values.shape)
    path.write_bytes(head + sizes + values.to(torch.uint8).numpy().tobytes())


def write_split(
    folder: Path, stem: str, images: torch.Tensor | None, labels: Sequence[int] | None
) -> None:
    """Write the two files of a split, or those that are given."""
    if images is not None:
        write_idx(folder / f"{stem}-images-idx3-ubyte", images)
    if labels is not None:
        write_idx(folder / f"{stem}-labels-idx1-ubyte", torch.tensor(labels))
