"""Gradients added up over several batches."""

from collections.abc import Sequence

import torch

from bridge.parallel.average import plus, widened


class Accumulator:
    """Adds the gradients of several batches to those of one large batch.

    Gradients of half precision are added in float32 and rounded once.

    Args:
        parameters: whose gradients; None counts as zero where another batch has one.

    Spec: R7.5
    """

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        """Start empty."""
        self._parameters = list(parameters)
        self.state: tuple[int, float, list[torch.Tensor | None]] = self._empty()

    @property
    def batches(self) -> int:
        """How many batches have been added."""
        return self.state[0]

    @torch.no_grad()
    def add(self, weight: float) -> None:
        """Add the present gradients times a weight, and drop them."""
        batches, total, sums = self.state
        pairs = zip(self._parameters, sums, strict=True)
        added = [_plus(parameter.grad, weight, held) for parameter, held in pairs]
        self.state = (batches + 1, total + weight, added)
        for parameter in self._parameters:
            parameter.grad = None

    @torch.no_grad()
    def finish(self, *, mean: bool) -> None:
        """Put the sums back as gradients, divided by the sum of the weights for a mean."""
        _, total, sums = self.state
        divisor = total if mean and total else 1.0
        for parameter, held in zip(self._parameters, sums, strict=True):
            gradient = None if held is None else (held / divisor).to(parameter.dtype)
            parameter.grad = gradient
        self.state = self._empty()

    def _empty(self) -> tuple[int, float, list[torch.Tensor | None]]:
        """Return the state before the first batch."""
        return 0, 0.0, [None] * len(self._parameters)


def _plus(
    gradient: torch.Tensor | None, weight: float, held: torch.Tensor | None
) -> torch.Tensor | None:
    """Add a weighted gradient to what is held, as a fresh tensor: an undo keeps the old one."""
    if gradient is None:
        return held
    wide = widened(gradient)
    return wide * weight if held is None else plus(held, wide, weight)
