"""Reduce the gradients of the replicas."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import nn

from bridge.parallel.sums import in_order

Reduction = Literal["weighted", "sum", "mean"]


@torch.no_grad()
def average(
    replicas: Sequence[nn.Module],
    weights: Sequence[float] | None = None,
    *,
    reduction: Reduction = "weighted",
    broadcast: bool = True,
) -> None:
    """Reduce the gradients of the replicas in replica order 0, 1, 2 and so on.

    ``weighted`` is the mean by sample count, equal to the mean loss of the undivided batch; without
    weights every replica counts the same. ``sum`` adds, ``mean`` divides by the number of replicas.
    A gradient that is None on every replica stays None; one that is None on some counts as zero
    there. Gradients of half precision are added in float32 and rounded once. Sparse gradients stay
    sparse.

    Args:
        replicas: modules with the same parameters.
        weights: samples (or tokens) per replica, for ``weighted``.
        reduction: ``"weighted"``, ``"sum"`` or ``"mean"``.
        broadcast: give every replica a copy of the result of its own; otherwise only replica 0
            keeps it and the other gradients are freed.

    Raises:
        ValueError: no replicas, bad weights, or replicas with different parameters.

    Spec: R5.1, R5.2, R5.3, R5.4, R5.5, R5.6
    """
    shares = _shares(len(replicas), weights, reduction)
    expected = _signature(replicas[0])
    for index, replica in enumerate(replicas):
        own = _signature(replica)
        if own != expected:
            message = f"average: expected replica {index} to have parameters {expected}, got {own}"
            raise ValueError(message)
    for parameters in zip(*(replica.parameters() for replica in replicas), strict=True):
        _reduce(parameters, shares)
    if broadcast:
        broadcast_gradients(replicas)


def _signature(replica: nn.Module) -> list[str]:
    """List the names and shapes of a module's parameters."""
    return [f"{name} {tuple(value.shape)}" for name, value in replica.named_parameters()]


def broadcast_gradients(replicas: Sequence[nn.Module]) -> None:
    """Give every replica a copy of replica 0's gradients, with storage of its own.

    Spec: R5.6
    """
    for parameters in zip(*(replica.parameters() for replica in replicas), strict=True):
        gradient = parameters[0].grad
        for parameter in parameters[1:]:
            own = None if gradient is None else gradient.to(parameter.device, copy=True)
            parameter.grad = own


def _shares(count: int, weights: Sequence[float] | None, reduction: Reduction) -> list[float]:
    """Turn weights into the factor of each replica."""
    if count == 0:
        message = "average: expected at least 1 replica, got 0"
        raise ValueError(message)
    if reduction not in ("weighted", "sum", "mean"):
        message = f"average: expected reduction weighted, sum or mean, got {reduction}"
        raise ValueError(message)
    if weights is None:
        return [1.0 if reduction == "sum" else 1 / count] * count
    if reduction != "weighted":
        message = f"average: expected no weights with reduction {reduction}, got {len(weights)}"
        raise ValueError(message)
    if len(weights) != count:
        message = f"average: expected {count} weights, one per replica, got {len(weights)}"
        raise ValueError(message)
    for index, weight in enumerate(weights):
        if not 0 <= weight < float("inf"):
            expected = f"weight {index} to be finite and not negative"
            message = f"average: expected {expected}, got {weight}"
            raise ValueError(message)
    total = in_order(weights)
    if total == 0:
        message = "average: expected a weight above 0, got only zeros"
        raise ValueError(message)
    return [weight / total for weight in weights]


def _reduce(parameters: Sequence[torch.Tensor], shares: Sequence[float]) -> None:
    """Reduce one parameter's gradients onto replica 0, and free the others."""
    first = parameters[0]
    total: torch.Tensor | None = None
    for parameter, share in zip(parameters, shares, strict=True):
        if parameter.grad is None:
            continue
        # That of weight 0 may be NaN: that of a mean over nothing.
        own = parameter.grad if share else torch.zeros_like(parameter.grad)
        gradient = widened(own).to(first.device)
        total = gradient * share if total is None else plus(total, gradient, share)
        parameter.grad = None
    first.grad = None if total is None else total.to(first.dtype)


def plus(total: torch.Tensor, gradient: torch.Tensor, share: float) -> torch.Tensor:
    """Add a share of a gradient, as a fresh tensor; a sparse sum becomes dense for a dense one."""
    dense = total.to_dense() if total.is_sparse and not gradient.is_sparse else total
    return dense.add(gradient, alpha=share)


def widened(gradient: torch.Tensor) -> torch.Tensor:
    """Widen a gradient of half precision, so that its sum is rounded once."""
    narrow = gradient.dtype in (torch.float16, torch.bfloat16)
    return gradient.to(torch.float32) if narrow else gradient
