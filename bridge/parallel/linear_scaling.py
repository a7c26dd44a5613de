"""Scale the learning rate for several replicas."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch.optim import Optimizer


@dataclass(frozen=True)
class LinearScaling:
    """The linear rule: k replicas, each with a batch of its own size, take k times the rate.

    Over the first ``warm_up`` updates the factor grows from 1 to ``factor`` in equal steps.

    Args:
        factor: k, how many times the batch is larger than the one the rate was made for.
        warm_up: the number of updates until the whole factor holds.

    Raises:
        ValueError: a factor that is not above 0, or a negative warm-up.

    Spec: R7.6. Source: Goyal et al. 2017, https://arxiv.org/abs/1706.02677
    """

    factor: float
    warm_up: int = 0

    def __post_init__(self) -> None:
        """Refuse what is no factor."""
        if not 0 < self.factor < float("inf"):
            message = f"LinearScaling: expected a factor above 0, got {self.factor}"
            raise ValueError(message)
        if self.warm_up < 0:
            message = f"LinearScaling: expected warm_up of at least 0, got {self.warm_up}"
            raise ValueError(message)

    def at(self, update: int) -> float:
        """Return the factor of an update, counted from 0."""
        if update >= self.warm_up:
            return self.factor
        return 1 + (self.factor - 1) * (update / self.warm_up)


@contextmanager
def scaled(optimizer: Optimizer, factor: float) -> Iterator[None]:
    """Scale the rates of an optimizer while it steps; schedulers see the rates unscaled."""
    rates = [group["lr"] for group in optimizer.param_groups]
    try:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * factor
        yield
    finally:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
