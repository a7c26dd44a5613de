"""A recurrent net."""

import torch
from torch import nn


class LSTM(nn.Module):
    """Classifies sequences by the last output of an LSTM."""

    def __init__(self) -> None:
        """Initialize the layers."""
        super().__init__()
        self.lstm: nn.Module = nn.LSTM(8, 12, batch_first=True)  # type: ignore[no-untyped-call]
        self.fc = nn.Linear(12, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Classify sequences ``(N, T, 8)``."""
        outputs, _ = self.lstm(x)
        out: torch.Tensor = self.fc(outputs[:, -1])
        return out
