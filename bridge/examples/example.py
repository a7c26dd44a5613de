"""What the examples have in common."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass(frozen=True)
class Setting:
    """What an example can be told; the same names and defaults in both languages.

    Args:
        steps: how many steps it trains.
        replicas: how many replicas, or parts.
        seed: of the weights and the data.
        dtype: ``"float32"`` or ``"float64"``.
        reference: whose optimizer formulas; Python runs those of its own torch.

    Raises:
        ValueError: a number out of range, or another dtype.

    Spec: R23.1
    """

    steps: int = 20
    replicas: int = 2
    seed: int = 0
    dtype: str = "float32"
    reference: str = "2.10"

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        for name, value in (("steps", self.steps), ("replicas", self.replicas)):
            if value < 1:
                message = f"example: expected {name} of at least 1, got {value}"
                raise ValueError(message)
        if self.seed < 0:
            message = f"example: expected seed of at least 0, got {self.seed}"
            raise ValueError(message)
        if self.dtype not in ("float32", "float64"):
            message = f"example: expected dtype float32 or float64, got {self.dtype}"
            raise ValueError(message)

    @property
    def torch_dtype(self) -> torch.dtype:
        """The element type."""
        return torch.float64 if self.dtype == "float64" else torch.float32


@dataclass
class Result:
    """What an example leaves.

    Args:
        losses: one per step.
        numbers: what it ends with, by name: accuracies, differences, ratios.
        state: the parameters at the end, by name.
    """

    losses: list[float]
    numbers: dict[str, float]
    state: Mapping[str, torch.Tensor] = field(default_factory=dict)


def difference(one: nn.Module, other: nn.Module) -> float:
    """Measure how far the parameters of two models are apart at most."""
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return max((a - b).abs().max().item() for a, b in pairs)


Example = Callable[[Setting, Callable[[str], None]], Result]
