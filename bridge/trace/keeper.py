"""Takes down a tensor without touching it."""

from collections.abc import Collection
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np
import numpy.typing as npt
import torch

from bridge.parity.digest import dtype_name, raw_bytes
from bridge.trace.record import Contents, Record
from bridge.trace.summary import summarize
from bridge.trace.xxh import xxh128

Entry = tuple[Record, bytes | None]
"""A record, and the bytes of its tensor where the whole of it is kept."""


class Keeper:
    """Takes down tensors: nothing is drawn, no graph is kept, and what is copied is freed.

    Args:
        full: keep the tensors whole whose name, such as ``fc1.*``, matches this pattern.
        full_steps: only in these steps.

    Spec: R30.2, R30.6
    """

    def __init__(self, full: str | None, full_steps: Collection[int] | None) -> None:
        """Keep what is asked for."""
        self._full = full
        self._steps = full_steps

    def entry(self, record: Record, tensor: torch.Tensor) -> Entry:
        """Add a tensor to the record that says where it belongs."""
        whole = (
            self._full is not None
            and fnmatchcase(record.name, self._full)
            and (self._steps is None or record.step in self._steps)
        )
        try:
            contents, content = observe(tensor)
        except (RuntimeError, NotImplementedError, TypeError) as error:
            return replace(record, unobserved=str(error).partition("\n")[0]), None
        return replace(record, tensor=contents), bytes(content) if whole else None


def observe(tensor: torch.Tensor) -> tuple[Contents, memoryview]:
    """Take down a tensor of any dtype and device; a sparse one as the dense one of its values.

    Returns:
        What a record says of it, and its bytes in row-major order, an alias where they are.

    Spec: R30.2
    """
    with torch.no_grad():
        plain = tensor.detach()
        dense = plain if plain.layout == torch.strided else plain.to_dense()
        own = dense.cpu().resolve_conj().resolve_neg().contiguous()
        content = raw_bytes(own)
        shape, summary = tuple(own.shape), summarize(_numbers(own))
        return Contents(dtype_name(own.dtype), shape, xxh128(content), summary), content


def _numbers(tensor: torch.Tensor) -> npt.NDArray[np.generic]:
    """View a tensor as real numbers that numpy knows."""
    real = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    known = real.float() if real.dtype == torch.bfloat16 else real
    numbers: npt.NDArray[np.generic] = known.reshape(-1).numpy()
    return numbers
