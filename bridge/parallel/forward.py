"""One replica's part of a step: from its shard to its loss, and from the losses to gradients."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import nn

from bridge.parallel.parallel_apply import parallel_apply
from bridge.parallel.scatter import batch_size
from bridge.parallel.sums import in_order

Loss = Callable[[Any, Any], Any]
Reduction = Literal["mean", "sum", "count"]
Part = tuple[torch.Tensor, float]


class Forward:
    """Runs a replica on its shard and returns its loss, with what it counts.

    Args:
        module: the replica.
        loss: ``(outputs, targets)`` to a scalar, or with ``count`` to a sum and a count.
        reduction: ``"mean"``, ``"sum"`` or ``"count"``.

    Spec: R8.5, R8.6
    """

    def __init__(self, module: nn.Module, loss: Loss, reduction: Reduction) -> None:
        """Keep the replica and the loss."""
        self.module = module
        self._loss = loss
        self._reduction = reduction

    def __call__(self, inputs: object, targets: object) -> Part:
        """Return the loss of a shard, a scalar, and its number of samples or its count."""
        arguments = inputs if isinstance(inputs, tuple) else (inputs,)
        value = self._loss(self.module(*arguments), targets)
        if self._reduction != "count":
            return value, batch_size((inputs, targets))
        if not isinstance(value, tuple) or len(value) != 2:  # noqa: PLR2004 - a pair
            kind = type(value).__name__
            message = f"Trainer: expected the loss to return a sum and a count, got {kind}"
            raise TypeError(message)
        return value[0], float(value[1])


def backward(parts: Sequence[Part], reduction: Reduction, *, together: bool) -> float:
    """Differentiate the losses of all shards, and return the loss of the whole batch.

    The gradients that it leaves on the replicas add up to those of the whole batch. A shard that
    counts nothing contributes nothing.

    Args:
        parts: the loss and count of each shard.
        reduction: how the losses were reduced.
        together: differentiate their sum, as replicas with connected graphs need.

    Returns:
        The mean loss over the samples or counts, or with ``sum`` the sum.

    Spec: R8.5, R8.6, R22.1
    """
    counted = [(loss, count) for loss, count in parts if count]
    total = in_order(count for _, count in counted)
    losses = [_scaled(loss, count, total, reduction) for loss, count in counted]
    if together and losses:
        torch.autograd.backward(losses)
    elif losses:
        runs: list[Callable[[], None]] = [partial(torch.autograd.backward, loss) for loss in losses]
        places = [loss.device for loss in losses]
        parallel_apply(runs, [()] * len(runs), devices=places)
    return _whole([(loss.item(), count) for loss, count in counted], total, reduction)


def _whole(values: Sequence[tuple[float, float]], total: float, reduction: Reduction) -> float:
    """Put the losses of the shards together to that of the whole batch."""
    if reduction == "mean":
        return in_order(value * (count / total) for value, count in values)
    whole = in_order(value for value, _ in values)
    return whole / total if reduction == "count" and total else whole


def _scaled(loss: torch.Tensor, count: float, total: float, reduction: Reduction) -> torch.Tensor:
    """Scale the loss of a shard to its part of the whole batch's."""
    if reduction == "count":
        return loss / total
    if reduction == "sum" or count == total:
        return loss
    return loss * (count / total)
