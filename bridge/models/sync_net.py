"""A small model whose replicas share the statistics of their batch, and draw."""

import torch
from torch import nn
from torch.nn import functional

from bridge.parallel.sync_batch_norm import SyncBatchNorm


class SyncNet(nn.Module):
    """Linear layers 8-16-4 with synchronized batch normalization, ReLU and dropout between them.

    The first has no bias: the normalization takes it off again.

    Shapes: ``(N, 8)`` to ``(N, 4)``.
    """

    def __init__(self, p: float = 0.25) -> None:
        """Initialize as PyTorch's layers do, from the default generator."""
        super().__init__()
        self.fc1 = nn.Linear(8, 16, bias=False)
        self.norm = SyncBatchNorm(16)
        self.drop = nn.Dropout(p)
        self.fc2 = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Classify vectors."""
        hidden = self.drop(functional.relu(self.norm(self.fc1(x))))
        logits: torch.Tensor = self.fc2(hidden)
        return logits
