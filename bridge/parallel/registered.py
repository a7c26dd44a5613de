"""The tensors of a model by name."""

from collections.abc import Iterator
from itertools import chain

import torch
from torch import nn


def registered(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """List parameters, then buffers, those that are not persistent included."""
    return chain(model.named_parameters(), model.named_buffers())
