"""Multi-layer perceptrons."""

import torch
from torch import nn
from torch.nn import functional


class MLP(nn.Module):
    """Three linear layers on normalized inputs, the second with a way around it."""

    def __init__(self) -> None:
        """Initialize the layers."""
        super().__init__()
        self.fc1 = nn.Linear(12, 16)
        self.fc2 = nn.Linear(16, 16)
        self.fc3 = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Classify vectors ``(N, 12)``."""
        x = (x - 0.1307) / 0.3081
        x = functional.relu(self.fc1(x))
        x = x + functional.relu(self.fc2(x))
        out: torch.Tensor = self.fc3(x)
        return out


class SharedMLP(nn.Module):
    """An MLP whose middle layer is one layer, three times."""

    def __init__(self) -> None:
        """Initialize the layers."""
        super().__init__()
        self.first = nn.Linear(12, 16)
        self.last = nn.Linear(16, 4)
        self.layers = nn.ModuleList([nn.Linear(16, 16)] * 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Classify vectors ``(N, 12)``."""
        x = functional.relu(self.first(x))
        for layer in self.layers:
            x = torch.tanh(layer(x))
        out: torch.Tensor = self.last(x)
        return out
