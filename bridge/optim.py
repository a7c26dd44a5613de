"""Optimizers by name, with the same options in both languages."""

from collections.abc import Iterable
from typing import Any

import torch

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
}
OPTIONS = {
    "sgd": ("lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize"),
    "adam": ("lr", "betas", "eps", "weight_decay", "amsgrad", "maximize"),
}


def create(name: str, parameters: Iterable[torch.Tensor], **options: Any) -> torch.optim.Optimizer:  # noqa: ANN401 - the optimizer checks its options
    """Make an optimizer by its name, with PyTorch's defaults.

    Args:
        name: ``"sgd"`` or ``"adam"``.
        parameters: what it updates.
        options: as PyTorch names them: ``lr``, ``momentum``, ``betas`` and so on.

    Raises:
        ValueError: another name, an option that the optimizer does not have, or one out of range.

    Spec: R9.1
    """
    if name not in OPTIMIZERS:
        message = f"optimizer: expected one of {', '.join(OPTIMIZERS)}, got {name!r}"
        raise ValueError(message)
    for option in options:
        if option not in OPTIONS[name]:
            expected = f"options of {name} ({', '.join(OPTIONS[name])})"
            message = f"optimizer: expected {expected}, got {option!r}"
            raise ValueError(message)
    # PyTorch 1.13 has no default learning rate for SGD.
    options.setdefault("lr", 1e-3)
    return OPTIMIZERS[name](list(parameters), **options)


def reference() -> str:
    """Name the formulas of the torch that runs: ``"1.13"`` before 2.0, else ``"2.10"``."""
    return "1.13" if int(torch.__version__.split(".")[0]) < 2 else "2.10"  # noqa: PLR2004
