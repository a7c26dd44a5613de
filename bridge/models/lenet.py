"""LeNet for images of one channel and 28 by 28 points."""

import torch
from torch import nn
from torch.nn import functional


class LeNet(nn.Module):
    """Two convolutions with average pooling, then two linear layers: 1-20-50 channels, 800-128-10.

    Shapes: ``(N, 1, 28, 28)`` to ``(N, 10)``.
    """

    def __init__(self) -> None:
        """Initialize as PyTorch's layers do, from the default generator."""
        super().__init__()
        self.conv1 = nn.Conv2d(1, 20, 3)
        self.conv2 = nn.Conv2d(20, 50, 5)
        self.fc1 = nn.Linear(800, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Classify images."""
        x = functional.avg_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.avg_pool2d(functional.relu(self.conv2(x)), 2)
        x = functional.relu(self.fc1(x.flatten(1)))
        logits: torch.Tensor = self.fc2(x)
        return logits
