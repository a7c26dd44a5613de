"""A model that holds anything."""

from typing import Any

import torch
from torch import nn


class Holder(nn.Module):
    """A linear layer, and an attribute of any type."""

    def __init__(self, held: Any = None) -> None:  # noqa: ANN401 - anything
        """Hold an object."""
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.held = held

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the layer."""
        output: torch.Tensor = self.layer(x)
        return output


class Recorder:
    """Writes down which modules called it, and can take its hook back."""

    def __init__(self, model: nn.Module) -> None:
        """Register with a model."""
        self.calls: list[nn.Module] = []
        self.handle = model.register_forward_hook(self.note)

    def note(self, module: nn.Module, *_: object) -> None:
        """Write down a call."""
        self.calls.append(module)
