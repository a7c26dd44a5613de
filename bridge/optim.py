"""Optimizers by name, with the same options in both languages."""

from collections.abc import Iterable
from typing import Any

import torch

MOMENTS = ("lr", "betas", "eps", "weight_decay")
OPTIONS = {
    "sgd": ("lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize"),
    "adam": (*MOMENTS, "amsgrad", "maximize", "decoupled_weight_decay"),
    "adamw": (*MOMENTS, "amsgrad", "maximize"),
    "rmsprop": ("lr", "alpha", "eps", "weight_decay", "momentum", "centered", "maximize"),
    "adagrad": ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps", "maximize"),
    "adamax": (*MOMENTS, "maximize"),
    "nadam": (*MOMENTS, "momentum_decay", "decoupled_weight_decay", "maximize"),
    "radam": (*MOMENTS, "decoupled_weight_decay", "maximize"),
    "asgd": ("lr", "lambd", "alpha", "t0", "weight_decay", "maximize"),
    "adadelta": ("lr", "rho", "eps", "weight_decay", "maximize"),
    "rprop": ("lr", "etas", "step_sizes", "maximize"),
    "lbfgs": (
        "lr",
        "max_iter",
        "max_eval",
        "tolerance_grad",
        "tolerance_change",
        "history_size",
        "line_search_fn",
    ),
}
LATER = {
    "adam": ("decoupled_weight_decay",),
    "nadam": ("decoupled_weight_decay", "maximize"),
    "radam": ("decoupled_weight_decay", "maximize"),
}
"""Options that PyTorch 1.13 lacks."""

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "rmsprop": torch.optim.RMSprop,
    "adagrad": torch.optim.Adagrad,
    "adamax": torch.optim.Adamax,
    "nadam": torch.optim.NAdam,
    "radam": torch.optim.RAdam,
    "asgd": torch.optim.ASGD,
    "adadelta": torch.optim.Adadelta,
    "rprop": torch.optim.Rprop,
    "lbfgs": torch.optim.LBFGS,
}


def create(
    name: str,
    parameters: Iterable[torch.Tensor] | Iterable[dict[str, Any]],
    **options: Any,  # noqa: ANN401 - the optimizer checks its options
) -> torch.optim.Optimizer:
    """Make an optimizer by its name, with PyTorch's defaults.

    Args:
        name: the class in lower case: ``"sgd"``, ``"adam"``, ``"adamw"``, ``"rmsprop"``, and so on.
        parameters: what it updates, or groups with options of their own.
        options: as PyTorch names them: ``lr``, ``momentum``, ``betas`` and so on.

    Raises:
        ValueError: another name, an option that the optimizer does not have, or one out of range.

    Spec: R9.1, R9.7
    """
    if name not in OPTIMIZERS:
        message = f"optimizer: expected one of {', '.join(OPTIMIZERS)}, got {name!r}"
        raise ValueError(message)
    later = LATER.get(name, ()) if reference() == "1.13" else ()
    known = [option for option in OPTIONS[name] if option not in later]
    for option in options:
        if option not in known:
            expected = f"options of {name} ({', '.join(known)})"
            message = f"optimizer: expected {expected}, got {option!r}"
            raise ValueError(message)
    if name == "sgd":
        # PyTorch 1.13 has no default learning rate for SGD.
        options.setdefault("lr", 1e-3)
    listed: list[Any] = list(parameters)
    return OPTIMIZERS[name](listed, **options)


def reference() -> str:
    """Name the formulas of the torch that runs: ``"1.13"`` before 2.0, else ``"2.10"``."""
    return "1.13" if int(torch.__version__.split(".")[0]) < 2 else "2.10"  # noqa: PLR2004
