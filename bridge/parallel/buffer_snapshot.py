"""The buffers of modules, kept so that they can be given back."""

from collections.abc import Iterable

import torch
from torch import nn


class BufferSnapshot:
    """The buffers of modules: which there are, and their values.

    A forward may change a buffer, or put another tensor in its place.

    Args:
        modules: whose buffers, those that are not persistent included.

    Spec: R21.1
    """

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        """Keep the buffers of modules."""
        layers = [layer for module in modules for layer in module.modules()]
        self._places = [(own._buffers, dict(own._buffers)) for own in layers if own._buffers]  # noqa: SLF001
        buffers = [buffer for _, held in self._places for buffer in held.values()]
        self._values = [(own, own.detach().clone()) for own in buffers if own is not None]

    @torch.no_grad()
    def restore(self) -> None:
        """Give the buffers back: the same tensors."""
        for place, held in self._places:
            place.clear()
            place.update(held)
        for buffer, value in self._values:
            buffer.copy_(value)
