"""A convolutional net."""

import torch
from torch import nn
from torch.nn import functional


class LeNet(nn.Module):
    """Two convolutions and two linear layers, with dropout; returns log-probabilities."""

    def __init__(self) -> None:
        """Initialize the layers."""
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 5, padding=2)
        self.conv2 = nn.Conv2d(4, 8, 3)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(72, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Classify images ``(N, 1, 16, 16)``."""
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        x = self.dropout(x.flatten(1))
        x = functional.relu(self.fc1(x))
        return functional.log_softmax(self.fc2(x), dim=1)
