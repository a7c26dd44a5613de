"""What PyTorch's LBFGS does."""

from typing import Any

import torch
from torch import nn

from tests.spec.generators.optimizers import tree
from tests.spec.generators.values import values

Case = dict[str, Any]

START = {"w": [[0.5, -1.25, 1.0], [0.0078125, -0.375, 1.5]], "u": [0.5], "b": [0.25, -1.0]}
TILTS: list[Case] = [
    {"w": [[0.75, -0.5, 1.0], [2.0, -0.125, 0.0]], "b": [1.0, -0.25]},
    {"w": [[-1.5, 0.25, 0.5], [0.0625, 1.0, 0.0]], "b": [0.5, 0.125]},
]
ABOUT = (
    "LBFGS on the sum of p * p * p * p * 0.25 + p * tilt over the parameters 'w' and 'b', which start with"
    " these values, by the formulas of PyTorch {version}. After a step for each of the tilts the parameters"
    " are 'expected', the steps returned 'losses', the closure was called 'calls' times, and state_dict()"
    " gives 'state'. 'u' has no gradient."
)
OPTIONS: list[Case] = [
    {"lr": 0.25, "max_iter": 4},
    {"lr": 0.5, "max_iter": 8, "history_size": 2},
    {"max_iter": 10, "max_eval": 6, "lr": 0.25},
    {"line_search_fn": "strong_wolfe", "max_iter": 4},
    {"line_search_fn": "strong_wolfe", "lr": 8, "max_iter": 3, "history_size": 2},
    {"line_search_fn": "strong_wolfe", "lr": 0.0625, "max_iter": 3},
    {"lr": 0.25, "tolerance_grad": 100},
    {"lr": 0.25, "tolerance_change": 10},
]
# Dot products add up in another order, by the processor's make.
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}


def lbfgs(version: str) -> Case:
    """Step LBFGS by the formulas of the PyTorch that runs."""
    kinds = ("float32", "float64")
    cases = [_case(options, kind) for options in OPTIONS for kind in kinds]
    return {"about": ABOUT.format(version=version), "cases": cases}


def _case(options: Case, dtype: str) -> Case:
    """Step once for each tilt."""
    kind = getattr(torch, dtype)
    held = {key: nn.Parameter(torch.tensor(value, dtype=kind)) for key, value in START.items()}
    optimizer = torch.optim.LBFGS(held.values(), **options)
    losses, calls = [], 0
    for tilt in TILTS:
        tilts = {key: torch.tensor(value, dtype=kind) for key, value in tilt.items()}

        def closure() -> torch.Tensor:
            nonlocal calls
            calls += 1
            optimizer.zero_grad(set_to_none=True)
            terms = [(held[key], value) for key, value in tilts.items()]  # noqa: B023 - called at once
            loss = sum((p * p * p * p * 0.25 + p * value).sum() for p, value in terms)
            loss.backward()
            return loss

        losses.append(optimizer.step(closure).item())
    texts = ", ".join(f"{key} {value}" for key, value in options.items())
    return {
        "name": f"{texts}, {dtype}",
        "spec": ["R9.6", "R9.9"],
        "dtype": dtype,
        "options": options,
        "parameters": START,
        "tilts": TILTS,
        "calls": calls,
        "losses": losses,
        "expected": {key: values(parameter) for key, parameter in held.items()},
        "state": tree(optimizer.state_dict()),
        "relative": TOLERANCE[dtype],
    }
