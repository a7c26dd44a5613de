"""A small model that draws random numbers."""

import torch
from torch import nn
from torch.nn import functional


class DropoutNet(nn.Module):
    """Linear layers 8-16-4 with ReLU and dropout between them.

    Shapes: ``(N, 8)`` to ``(N, 4)``.
    """

    def __init__(self) -> None:
        """Initialize as PyTorch's layers do, from the default generator."""
        super().__init__()
        self.fc1 = nn.Linear(8, 16)
        self.drop = nn.Dropout(0.5)
        self.fc2 = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Classify vectors."""
        logits: torch.Tensor = self.fc2(self.drop(functional.relu(self.fc1(x))))
        return logits
