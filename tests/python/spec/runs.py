"""Training runs that are saved and resumed."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import bridge
from bridge.data import Loader
from bridge.optim import create

SAMPLES, BATCH = 22, 6
STEPS_PER_EPOCH = 4


class Noted(nn.Module):
    """A model that draws, with batch normalization and a buffer that no state dict has."""

    seen: torch.Tensor

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.fc1 = nn.Linear(8, 6)
        self.norm = nn.BatchNorm1d(6)
        self.drop = nn.Dropout(0.5)
        self.fc2 = nn.Linear(6, 4)
        self.register_buffer("seen", torch.zeros(()), persistent=False)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Classify, a little more boldly each time."""
        self.seen += 1
        outputs: torch.Tensor = self.fc2(self.drop(self.norm(self.fc1(inputs))))
        return outputs * (1 + self.seen / 100)


def trainer(optimizer: str = "adam", **options: Any) -> bridge.Trainer:  # noqa: ANN401
    """Make a trainer of two replicas."""
    torch.manual_seed(3)
    return bridge.Trainer(
        Noted().double(),
        lambda parameters: create(optimizer, parameters),
        functional.cross_entropy,
        ["cpu"] * 2,
        **options,
    )


def loader() -> Loader:
    """Make a loader of a few batches an epoch."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(SAMPLES, 8, generator=generator).double()
    return Loader((inputs, torch.randint(0, 4, (SAMPLES,), generator=generator)), BATCH, seed=2)


class Broken(Exception):  # noqa: N818 - not an error
    """The run is broken off."""


def broken(run: bridge.Trainer, data: Loader, path: Path, cut: int, epochs: int) -> None:
    """Fit until some step, and save there."""

    def on_step(number: int, _: float) -> None:
        if number == cut:
            run.save(path, data, {"best": 0.5})
            raise Broken

    try:
        run.fit(data, epochs, on_step)
    except Broken:
        return
    message = f"expected at least {cut} steps"
    raise AssertionError(message)
