"""A small residual net."""

import torch
from torch import nn
from torch.nn import functional


class BasicBlock(nn.Module):
    """Two convolutions with batch normalization, and a way around them."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        """Initialize the layers."""
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Turn images into images."""
        identity = x if self.downsample is None else self.downsample(x)
        y = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(y)) + identity)


class ResNet(nn.Module):
    """A convolution and three residual blocks."""

    def __init__(self) -> None:
        """Initialize the layers."""
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.blocks = nn.ModuleList(
            [BasicBlock(8, 8), BasicBlock(8, 16, stride=2), BasicBlock(16, 16)]
        )
        self.fc = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Classify images ``(N, 3, 8, 8)``."""
        x = functional.relu(self.bn1(self.conv1(x)))
        for block in self.blocks:
            x = block(x)
        out: torch.Tensor = self.fc(functional.adaptive_avg_pool2d(x, 1).flatten(1))
        return out
