"""One replica's part of a step: from its shard to its loss, and from the losses to gradients."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import nn

from bridge.parallel.failure import Failure, ReplicaError
from bridge.parallel.invoke import call
from bridge.parallel.parallel_apply import parallel_apply
from bridge.parallel.random_states import RandomStates
from bridge.parallel.scatter import batch_size
from bridge.parallel.sums import in_order

Loss = Callable[[Any, Any], Any]
Reduction = Literal["mean", "sum", "count"]
Part = tuple[torch.Tensor, float]
Whole = tuple[float, float]


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
        value = self._loss(call(self.module, inputs), targets)
        if self._reduction == "count":
            return _with_count(value)
        return _scalar(value), batch_size((inputs, targets))


def _with_count(value: object) -> Part:
    """Take a sum and a count apart."""
    if not isinstance(value, tuple) or len(value) != 2:  # noqa: PLR2004 - a pair
        kind = type(value).__name__
        message = f"Trainer: expected the loss to return a sum and a count, got {kind}"
        raise TypeError(message)
    total, count = _scalar(value[0]), value[1]
    if isinstance(count, torch.Tensor) and count.numel() == 1:
        count = count.item()
    if not isinstance(count, int | float):
        got = _written(count)
        message = f"Trainer: expected the loss to return a count of one number, got {got}"
        raise TypeError(message)
    count = float(count)
    if not 0 <= count < float("inf"):
        message = f"Trainer: expected a count that is finite and not negative, got {count}"
        raise ValueError(message)
    return total, count


def _scalar(value: object) -> torch.Tensor:
    """Take a loss, which is one number in a tensor."""
    if not isinstance(value, torch.Tensor) or value.numel() != 1:
        message = f"Trainer: expected the loss to return a scalar tensor, got {_written(value)}"
        raise TypeError(message)
    return value


def _written(value: object) -> str:
    """Write the shape of a tensor, or the type of another value."""
    if isinstance(value, torch.Tensor):
        return f"shape {tuple(value.shape)}"
    return type(value).__name__


def backward(
    parts: Sequence[Part],
    reduction: Reduction,
    *,
    together: bool,
    states: RandomStates | None = None,
) -> Whole:
    """Differentiate the losses of all shards, and return the loss of the whole batch.

    The gradients that it leaves on the replicas add up to those of the whole batch. A shard that
    counts nothing contributes nothing.

    Args:
        parts: the loss and count of each shard.
        reduction: how the losses were reduced.
        together: differentiate their sum, as replicas with connected graphs need.
        states: the random states of the replicas, where they draw.

    Returns:
        The mean loss over the samples or counts, or with ``sum`` the sum; and their number.

    Spec: R8.5, R8.6, R22.1
    """
    total = in_order(count for _, count in parts)
    losses = [_scaled(loss, count, total, reduction) if count else None for loss, count in parts]
    counts = any(count for _, count in parts)
    if together and counts:
        _differentiate_together(losses)
    elif counts:
        runs = [partial(_differentiate, loss) for loss in losses]
        places = [loss.device for loss, _ in parts]
        parallel_apply(runs, [()] * len(runs), devices=places, states=states)
    values = [(loss.item(), count) for loss, count in parts if count]
    return _whole(values, total, reduction), total


def _differentiate(loss: torch.Tensor | None) -> None:
    """Differentiate the loss of a shard, unless it counts nothing."""
    if loss is not None:
        torch.autograd.backward(loss)


def _differentiate_together(losses: Sequence[torch.Tensor | None]) -> None:
    """Differentiate the sum of all losses; a failure is that of all replicas that count."""
    counted = [(index, loss) for index, loss in enumerate(losses) if loss is not None]
    try:
        torch.autograd.backward([loss for _, loss in counted])
    except Exception as error:
        failures = [Failure(index, loss.device, error) for index, loss in counted]
        raise ReplicaError(failures, len(losses), together=True) from error


def _whole(values: Sequence[Whole], total: float, reduction: Reduction) -> float:
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
