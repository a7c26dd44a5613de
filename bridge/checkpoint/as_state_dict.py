"""Trees that were read, as state dicts."""

from typing import Any

import torch


def as_state_dict(value: Any) -> dict[str, torch.Tensor]:  # noqa: ANN401 - any tree
    """Take a part of what was read as names and tensors, for ``load_state_dict``.

    Args:
        value: a dict of names and tensors.

    Returns:
        Names and tensors (aliases), in their order.

    Raises:
        TypeError: something else; the name is given.

    Spec: R26.12
    """
    if not isinstance(value, dict):
        message = f"as_state_dict: expected names and tensors, got {_kind(value)}"
        raise TypeError(message)
    for name, tensor in value.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            message = f"as_state_dict: expected a name and a tensor, got {name}: {_kind(tensor)}"
            raise TypeError(message)
    return dict(value)


def _kind(value: object) -> str:
    """Name a type."""
    return "tensor" if isinstance(value, torch.Tensor) else type(value).__name__
