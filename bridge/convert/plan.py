"""What a conversion does, before and after it is done."""

from dataclasses import dataclass, field

import torch

from bridge.parity.digest import dtype_name


@dataclass(frozen=True)
class Row:
    """One tensor on its way: its names, its shape, its dtype, and what is to be known."""

    source: str
    target: str
    shape: tuple[int, ...]
    dtype: str
    note: str = ""


@dataclass(frozen=True)
class Plan:
    """The rows of a conversion, what did not match, and whether the file was written."""

    rows: list[Row]
    faults: list[str] = field(default_factory=list)
    written: bool = False


def row_of(source: str, target: str, tensor: torch.Tensor, note: str = "") -> Row:
    """Describe a tensor."""
    return Row(source, target, tuple(tensor.shape), dtype_name(tensor.dtype), note)
