"""What watches a trainer."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


class Observer:
    """Watches the steps of a trainer and changes nothing; this one does not even look."""

    def inputs(self, inputs: object, targets: object = None, replica: int = 0) -> None:
        """See the shard of a replica, before its forward."""

    def loss(self, loss: torch.Tensor, replica: int = 0) -> None:
        """See the loss of a replica, after the forwards of all."""

    def gradients(self, phase: str = "backward") -> None:
        """See the gradients after the backward, the reduction or the clipping."""

    def step(self) -> None:
        """See the end of a step."""

    def undo(self) -> None:
        """See a step undone, which is done again."""

    def fail(self, failure: BaseException) -> None:
        """See a step fail."""


@contextmanager
def watched(observer: Observer) -> Iterator[None]:
    """Show an observer how a step ends."""
    try:
        yield
    except BaseException as error:
        observer.fail(error)
        raise
    observer.step()
