"""What a trainer can be told."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from torch import nn
from torch.optim import Optimizer

from bridge.parallel.forward import Reduction
from bridge.parallel.linear_scaling import LinearScaling
from bridge.parallel.resync import Buffers

Mode = Literal["master", "all"]


class Scheduler(Protocol):
    """What the trainer asks of a learning-rate scheduler."""

    def step(self) -> None:
        """Move on by one update."""

    def state_dict(self) -> dict[str, Any]:
        """Return its state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state."""


@dataclass(frozen=True)
class TrainerOptions:
    """What a trainer can be told besides its model, optimizer, loss and devices.

    Raises:
        ValueError: an option out of range.

    Spec: R8.7
    """

    reduction: Reduction = "mean"
    mode: Mode = "master"
    buffers: Buffers = "first"
    accumulate: int = 1
    clip_norm: float | None = None
    clip_value: float | None = None
    scheduler: Callable[[Optimizer], Scheduler] | None = None
    scaling: LinearScaling | None = None
    factory: Callable[[], nn.Module] | None = None

    def __post_init__(self) -> None:
        """Refuse an option out of range."""
        _check_choice("reduction", self.reduction, ("mean", "sum", "count"))
        _check_choice("mode", self.mode, ("master", "all"))
        _check_choice("buffers", self.buffers, ("first", "mean", "each"))
        if self.accumulate % 1 != 0:
            message = f"Trainer: expected accumulate to be a whole number, got {self.accumulate}"
            raise ValueError(message)
        if self.accumulate < 1:
            message = f"Trainer: expected accumulate of at least 1, got {self.accumulate}"
            raise ValueError(message)
        _check_limit("clip_norm", self.clip_norm)
        _check_limit("clip_value", self.clip_value)


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse an option that is none of the choices."""
    if value not in choices:
        message = f"Trainer: expected {name} {', '.join(choices)}, got {value}"
        raise ValueError(message)


def _check_limit(name: str, limit: float | None) -> None:
    """Refuse a limit that is not above 0."""
    if limit is not None and not limit > 0:
        message = f"Trainer: expected {name} above 0, got {limit}"
        raise ValueError(message)
