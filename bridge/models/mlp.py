"""A stack of linear layers."""

import torch
from torch import nn
from torch.nn import functional


class MLP(nn.Module):
    """Linear layers 1024-512-256-128-64-10 with ReLU between them.

    Shapes: ``(N, 1024)`` to ``(N, 10)``.
    """

    def __init__(self) -> None:
        """Initialize as PyTorch's layers do, from the default generator."""
        super().__init__()
        self.fc1 = nn.Linear(1024, 512)
        self.fc2 = nn.Linear(512, 256)
        self.fc3 = nn.Linear(256, 128)
        self.fc4 = nn.Linear(128, 64)
        self.fc5 = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Classify vectors."""
        for layer in (self.fc1, self.fc2, self.fc3, self.fc4):
            x = functional.relu(layer(x))
        logits: torch.Tensor = self.fc5(x)
        return logits
