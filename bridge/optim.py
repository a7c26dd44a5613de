"""Optimizers by name, with the same options in both languages."""

from collections.abc import Iterable
from typing import Any

import torch

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
}


def create(name: str, parameters: Iterable[torch.Tensor], **options: Any) -> torch.optim.Optimizer:  # noqa: ANN401 - the optimizer checks its options
    """Make a PyTorch optimizer by its name.

    Args:
        name: ``"sgd"`` or ``"adam"``.
        parameters: what it updates.
        options: as PyTorch names them: ``lr``, ``momentum``, ``betas`` and so on.

    Raises:
        ValueError: another name.

    Spec: R9.1
    """
    if name not in OPTIMIZERS:
        message = f"optimizer: expected one of {', '.join(OPTIMIZERS)}, got {name!r}"
        raise ValueError(message)
    return OPTIMIZERS[name](list(parameters), **options)


def reference() -> str:
    """Name the formulas of the torch that runs: ``"1.13"`` before 2.0, else ``"2.10"``."""
    return "1.13" if int(torch.__version__.split(".")[0]) < 2 else "2.10"  # noqa: PLR2004
