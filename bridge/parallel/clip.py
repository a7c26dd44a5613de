"""Clip gradients."""

from collections.abc import Iterable

import torch
from torch.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_


def clip_gradients(
    parameters: Iterable[torch.Tensor],
    max_norm: float | None = None,
    max_value: float | None = None,
) -> float | None:
    """Clip gradients to a norm over all of them, then each value to a range.

    Sparse gradients are clipped as the dense ones that they stand for, and stay sparse.

    Args:
        parameters: what has the gradients; those without are passed over.
        max_norm: the largest Euclidean norm.
        max_value: the largest absolute value.

    Returns:
        The norm before clipping, where ``max_norm`` is given.

    Raises:
        ValueError: a limit that is not above 0.

    Spec: R7.4. Source: torch/nn/utils/clip_grad.py
    """
    for name, limit in (("max_norm", max_norm), ("max_value", max_value)):
        if limit is not None and not limit > 0:
            message = f"clip_gradients: expected {name} above 0, got {limit}"
            raise ValueError(message)
    held = [_clippable(parameter) for parameter in parameters if parameter.grad is not None]
    norm = None
    if max_norm is not None:
        norm = float(clip_grad_norm_(held, max_norm))
    if held and max_value is not None:
        clip_grad_value_(held, max_value)
    return norm


def _clippable(parameter: torch.Tensor) -> torch.Tensor:
    """Return what torch can clip: for a sparse gradient a tensor of its values, each index once."""
    if parameter.grad is None or not parameter.grad.is_sparse:
        return parameter
    parameter.grad = parameter.grad.coalesce()
    values = parameter.grad.values()
    place = torch.empty_like(values)
    place.grad = values
    return place
