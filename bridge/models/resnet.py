"""ResNet-18 for small images."""

import torch
from torch import nn
from torch.nn import functional

CHANNELS, BLOCKS = (64, 128, 256, 512), 2


class Residual(nn.Module):
    """Two convolutions with batch normalization, and a way around them.

    Shapes: ``(N, in_channels, H, W)`` to ``(N, channels, H / stride, W / stride)``.

    Args:
        in_channels: of the input.
        channels: of the output.
        stride: of the first convolution.
    """

    def __init__(self, in_channels: int, channels: int, stride: int) -> None:
        """Initialize as PyTorch's layers do, from the default generator."""
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride, 1)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1)
        self.bn2 = nn.BatchNorm2d(channels)
        same = in_channels == channels and stride == 1
        self.around = None if same else nn.Conv2d(in_channels, channels, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add what the convolutions make to what goes around them."""
        y = functional.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return functional.relu(y + (x if self.around is None else self.around(x)))


class ResNet18(nn.Module):
    """Eight residual blocks in four stages, for images from 8 by 8 points on.

    Shapes: ``(N, in_channels, H, W)`` to ``(N, classes)``.

    Args:
        in_channels: of the images.
        classes: how many.
    """

    def __init__(self, in_channels: int = 1, classes: int = 10) -> None:
        """Initialize as PyTorch's layers do, from the default generator."""
        super().__init__()
        self.conv = nn.Conv2d(in_channels, CHANNELS[0], 3, 1, 1)
        self.bn = nn.BatchNorm2d(CHANNELS[0])
        blocks: list[nn.Module] = []
        inner = CHANNELS[0]
        for stage, channels in enumerate(CHANNELS):
            for block in range(BLOCKS):
                blocks.append(Residual(inner, channels, 2 if stage and not block else 1))
                inner = channels
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(inner, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Classify images."""
        x = functional.relu(self.bn(self.conv(x)))
        x = self.blocks(x)
        logits: torch.Tensor = self.fc(x.mean((2, 3)))
        return logits
