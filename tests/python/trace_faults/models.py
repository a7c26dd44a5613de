"""The models of the test bed."""

import math

import torch
from torch import nn


class Mlp(nn.Module):
    """Two square layers and a head."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.fc1 = nn.Linear(12, 12)
        self.act = nn.ReLU()
        self.fc2 = nn.Linear(12, 12)
        self.head = nn.Linear(12, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run the layers, with a residual around the second."""
        hidden = self.act(self.fc1(x))
        result: torch.Tensor = self.head(self.join(hidden, torch.relu(self.fc2(hidden))))
        return result

    def join(self, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        """Add the residual."""
        return before + after


class ConvNet(nn.Module):
    """A convolution, batch normalization, dropout, pooling, and a head."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.act = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.conv2 = nn.Conv2d(6, 8, 3, padding=1)
        self.drop = nn.Dropout(0.0)
        self.head = nn.Linear(8 * 16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run the layers."""
        maps = self.pool(self.act(self.norm(self.conv(x))))
        result: torch.Tensor = self.head(self.drop(torch.relu(self.conv2(maps)).flatten(1)))
        return result


class Lstm(nn.Module):
    """A recurrent layer, whose last output goes into a head."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.rnn = nn.LSTM(6, 10, batch_first=True)  # type: ignore[no-untyped-call]
        self.head = nn.Linear(10, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run the layers."""
        result: torch.Tensor = self.head(self.rnn(x)[0][:, -1])
        return result


class Attention(nn.Module):
    """Embedding, one head of attention, layer normalization, and a head."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.query = nn.Linear(8, 8)
        self.key = nn.Linear(8, 8)
        self.value = nn.Linear(8, 8)
        self.soft = nn.Softmax(dim=-1)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run the layers."""
        embedded = self.embed(x)
        weights = self.soft(self.scores(self.query(embedded), self.key(embedded)))
        mixed = self.norm(embedded + weights @ self.value(embedded))
        result: torch.Tensor = self.head(mixed.mean(dim=1))
        return result

    def scores(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        """Compare queries with keys."""
        return query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])


SHAPES = {Mlp: (12,), ConvNet: (1, 8, 8), Lstm: (5, 6), Attention: (6,)}
"""The shape of one sample."""
