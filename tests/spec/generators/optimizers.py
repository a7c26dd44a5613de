"""What PyTorch's own optimizers do."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from tests.spec.generators.values import values

Case = dict[str, Any]
Job = tuple[str, Case, list[Case], list[str]]

START = {"w": [[0.5, -1.25, 3.0], [0.0078125, -0.375, 1.5]], "b": [0.25, -2.0]}
GRADIENTS: list[Case] = [
    {"w": [[0.75, -0.5, 1.0], [2.0, -0.125, 0.0]], "b": [1.0, -0.25]},
    {"w": [[-1.5, 0.25, 0.5], [0.0625, 3.0, 0.0]], "b": [0.5, 0.125]},
    {"w": [[0.375, 1.25, -0.75], [-4.0, 0.5, 0.0]], "b": [-0.625, 2.0]},
    {"w": [[0.03125, -2.5, 1.75], [0.25, -0.25, 0.0]], "b": [1.5, -1.0]},
]
PAUSED = [GRADIENTS[0], {**GRADIENTS[1], "b": None}, GRADIENTS[2]]
LATE = [{**GRADIENTS[0], "w": None}, *GRADIENTS[1:3]]
ABOUT = (
    "Parameters that start with these values have those of 'expected' after each step of create"
    "('{name}', parameters, options){formula}; a gradient that is null is None."
)
SGD: dict[str, Case] = {
    "plain": {"lr": 0.1},
    "momentum": {"lr": 0.1, "momentum": 0.9},
    "dampening": {"lr": 0.1, "momentum": 0.9, "dampening": 0.3},
    "Nesterov": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "weight decay": {"lr": 0.1, "weight_decay": 0.01},
    "maximize": {"lr": 0.1, "maximize": True},
    "momentum, dampening, weight decay, maximize": {
        "lr": 0.1,
        "momentum": 0.9,
        "dampening": 0.3,
        "weight_decay": 0.01,
        "maximize": True,
    },
}
FLAT = {"lr": 2.0**17, "eps": 2.0**20}  # the denominator is all epsilon
MOMENT: dict[str, Case] = {
    "first moment": FLAT,
    "first moment, betas of 0.5 and less": {**FLAT, "betas": [0.25, 0.5]},
    "first moment, weight decay": {**FLAT, "weight_decay": 0.01},
    "first moment, maximize": {**FLAT, "maximize": True},
}
ADAM: dict[str, Case] = {
    "defaults": {},
    "a large learning rate": {"lr": 0.1},
    "betas of 0.5 and less": {"lr": 0.1, "betas": [0.25, 0.5]},
    "a large epsilon": {"lr": 0.1, "eps": 0.125},
    "weight decay": {"lr": 0.1, "weight_decay": 0.01},
    "amsgrad": {"lr": 0.1, "betas": [0.9, 0.5], "amsgrad": True},
    "maximize": {"lr": 0.1, "maximize": True},
    "weight decay, amsgrad, maximize": {
        "lr": 0.1,
        "weight_decay": 0.01,
        "amsgrad": True,
        "maximize": True,
    },
}


def sgd() -> Case:
    """Step SGD, which is the same in every version of PyTorch."""
    about = ABOUT.format(name="sgd", formula="")
    cases = _cases("R9.2", SGD, "momentum", torch.optim.SGD)
    return {"about": about, "cases": [{**case, "fused": True} for case in cases]}


def adam(reference: str) -> Case:
    """Step Adam by the formula of the PyTorch that runs."""
    about = ABOUT.format(name="adam", formula=f" by the formula of PyTorch {reference}")
    make = torch.optim.Adam
    moment = _cases("R9.3", MOMENT, "first moment", make)
    # Libraries round the square root of the second moment up or down, by the processor's make.
    whole = _cases("R9.3", ADAM, "weight decay", make)
    tolerance = {"float32": 5e-7, "float64": 1e-15}
    cases: list[Case] = [{**case, "fused": True} for case in moment]
    cases += [{**case, "relative": tolerance[case["dtype"]]} for case in whole]
    return {"about": about, "cases": [{**case, "reference": reference} for case in cases]}


def _cases(
    spec: str, table: Mapping[str, Case], pausing: str, make: Callable[..., Any]
) -> list[Case]:
    """Step with every set of options, and with gradients that are None, in both dtypes."""
    jobs: list[Job] = [(name, options, GRADIENTS, [spec]) for name, options in table.items()]
    for when, gradients in (("for a step", PAUSED), ("at first", LATE)):
        name = f"{pausing}, a gradient is None {when}"
        jobs.append((name, table[pausing], gradients, [spec, "R9.4"]))
    kinds = ("float32", "float64")
    return [_case(job, kind, make) for job in jobs for kind in kinds]


def _case(job: Job, kind: str, make: Callable[..., Any]) -> Case:
    """Step once for each set of gradients."""
    name, options, gradients, spec = job
    case: Case = {"name": f"{name}, {kind}", "spec": spec, "dtype": kind, "options": options}
    dtype = getattr(torch, kind)
    held = {key: nn.Parameter(torch.tensor(value, dtype=dtype)) for key, value in START.items()}
    optimizer = make(held.values(), **options)
    expected = []
    for gradient in gradients:
        for key, parameter in held.items():
            given = gradient[key]
            parameter.grad = None if given is None else torch.tensor(given, dtype=dtype)
        optimizer.step()
        expected.append({key: values(parameter) for key, parameter in held.items()})
    return {**case, "parameters": START, "gradients": gradients, "expected": expected}
