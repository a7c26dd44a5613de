"""What PyTorch's own optimizers do."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from tests.spec.generators.values import values

Case = dict[str, Any]
Parameters = dict[str, nn.Parameter]

START = {"w": [[0.5, -1.25, 3.0], [0.0078125, -0.375, 1.5]], "u": [4.0], "b": [0.25, -2.0]}
GRADIENTS: list[Case] = [
    {"w": [[0.75, -0.5, 1.0], [2.0, -0.125, 0.0]], "b": [1.0, -0.25]},
    {"w": [[-1.5, 0.25, 0.5], [0.0625, 3.0, 0.0]], "b": None},
    {"w": None, "b": [-0.625, 2.0]},
    {"w": [[0.375, 1.25, -0.75], [-4.0, 0.5, 0.0]], "b": [0.5, 0.125]},
    {"w": [[0.03125, -2.5, 1.75], [0.25, -0.25, 0.0]], "b": [1.5, -1.0]},
]
MORE: list[Case] = [
    {"w": [[0.25, 0.75, -1.5], [1.25, -0.5, 0.0]], "b": [-0.25, 0.5]},
    {"w": [[-0.5, 0.125, 1.0], [-0.75, 2.0, 0.0]], "b": [2.0, 0.25]},
]
ABOUT = (
    "Parameters that start with these values have those of 'expected' after a step of the optimizer with"
    " each of the gradients, by the formulas of PyTorch {version}; null is no gradient, and 'u' never has"
    " one. 'b' is a group of its own, with the options of 'group'. 'state' is what state_dict() gives then."
    " Another optimizer that takes it, on equal parameters, leaves 'resumed' after the gradients 'more'."
)
FLAT = {"lr": 2.0**17, "eps": 2.0**20}  # the denominator is all epsilon
DECAY, CLIMB = {"weight_decay": 0.01}, {"maximize": True}
HEAVY = {"lr": 0.1, "momentum": 0.9}
MOMENTS: list[Case] = [
    {},
    FLAT,
    {**FLAT, **DECAY, "betas": [0.25, 0.5]},
    {"lr": 0.1, "eps": 0.125, "betas": [0.25, 0.5]},
    {"lr": 0.1, **DECAY},
]
AMSGRAD: Case = {"lr": 0.1, "betas": [0.9, 0.5], "amsgrad": True}
OPTIONS: dict[str, list[Case]] = {
    "sgd": [
        {"lr": 0.1},
        HEAVY,
        {**HEAVY, "dampening": 0.3, **DECAY, **CLIMB},
        {**HEAVY, "nesterov": True},
        {"lr": 0.1, **DECAY},
        {"lr": 0.1, **CLIMB},
    ],
    "adam": [*MOMENTS, {**FLAT, **CLIMB}, AMSGRAD, {**AMSGRAD, **DECAY, **CLIMB}],
    "adamw": [*MOMENTS, {**FLAT, "weight_decay": 0}, {**AMSGRAD, **CLIMB}],
    "rmsprop": [
        {},
        FLAT,
        {**FLAT, "momentum": 0.5, "centered": True, **DECAY, **CLIMB},
        {"alpha": 0.5, "eps": 0.25},
        {"centered": True, "alpha": 0.5},
        {"momentum": 0.9, **DECAY},
    ],
    "adagrad": [
        {},
        FLAT,
        {**FLAT, "lr_decay": 0.25, **DECAY, **CLIMB},
        {"lr_decay": 0.5, "initial_accumulator_value": 0.25, "eps": 0.125},
    ],
    "adamax": [*MOMENTS, {"lr": 0.1, **DECAY, **CLIMB}],
    "nadam": [*MOMENTS, {**FLAT, "momentum_decay": 0.25}],
    "radam": [*MOMENTS, {"lr": 0.1, "betas": [0.5, 0.875]}],
    "asgd": [
        {},
        {"lr": 0.5, "lambd": 0.125, "alpha": 0.5},
        {"lr": 0.25, "t0": 1, **DECAY, **CLIMB},
    ],
    "adadelta": [{}, {"rho": 0.5, "eps": 0.125}, {"lr": 0.5, **DECAY, **CLIMB}],
    "rprop": [{}, {"lr": 0.25, "etas": [0.25, 1.5], "step_sizes": [0.125, 0.5], **CLIMB}],
}
LATER: dict[str, list[Case]] = {
    "adam": [{**FLAT, **DECAY, "decoupled_weight_decay": True}],
    "nadam": [{**FLAT, **DECAY, **CLIMB, "decoupled_weight_decay": True}],
    "radam": [{"lr": 0.1, **DECAY, **CLIMB, "decoupled_weight_decay": True}],
}
CLASSES = {
    name.lower(): getattr(torch.optim, name)
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adamax", "NAdam", "RAdam", "ASGD")
    + ("Adadelta", "Rprop")
}
REQUIREMENTS = {"sgd": "R9.2", "adam": "R9.3", "adamw": "R9.3"}
ROOTLESS = ("sgd", "adamax", "asgd", "rprop")
# Libraries round square roots up or down, by the processor's make.
TOLERANCE = {"float32": 1e-6, "float64": 2e-15}


def optimizers(version: str) -> Case:
    """Step every optimizer by the formulas of the PyTorch that runs."""
    cases = [_case(*job) for job in _jobs(later=version != "1.13")]
    return {"about": ABOUT.format(version=version), "cases": cases}


def _jobs(*, later: bool) -> Iterator[tuple[str, Case, str]]:
    """List optimizers, options and dtypes; half precision for the first options of each."""
    for name, table in OPTIONS.items():
        for options in [*table, *(LATER.get(name, []) if later else [])]:
            half = ["bfloat16"] if options is table[1] and name not in {"adadelta"} else []
            for dtype in ["float32", "float64", *half]:
                yield name, options, dtype


def _case(name: str, options: Case, dtype: str) -> Case:
    """Step once for each set of gradients, then save, load and step on."""
    held = _parameters(START, dtype)
    optimizer = _make(name, options, held)
    _steps(optimizer, held, GRADIENTS, dtype)
    expected = {key: values(parameter) for key, parameter in held.items()}
    state = tree(optimizer.state_dict())
    twins = _parameters(expected, dtype)
    resumed = _make(name, options, twins)
    resumed.load_state_dict(optimizer.state_dict())
    _steps(resumed, twins, MORE, dtype)
    texts = ", ".join(f"{key} {value}" for key, value in options.items())
    exact = name in ROOTLESS or options.get("eps") == FLAT["eps"]
    return {
        "name": f"{name}, {texts or 'defaults'}, {dtype}",
        "spec": [REQUIREMENTS.get(name, "R9.5"), "R9.4", "R9.8", "R9.9"],
        "optimizer": name,
        "dtype": dtype,
        "options": _named(name, options),
        "group": _group(options),
        "parameters": START,
        "gradients": GRADIENTS,
        "more": MORE,
        "expected": expected,
        "state": state,
        "resumed": {key: values(parameter) for key, parameter in twins.items()},
        **({"fused": True} if exact else {"relative": TOLERANCE[dtype]}),
    }


def _named(name: str, options: Case) -> Case:
    """Give SGD's rate, which PyTorch 1.13 asks for, and two numbers as tuples."""
    given = {"lr": 1e-3, **options} if name == "sgd" else options
    return {key: {"tuple": value} if isinstance(value, list) else value for key, value in given.items()}


def _group(options: Case) -> Case:
    """Give the second group a rate of its own."""
    return {"lr": options.get("lr", 0.01) / 2}


def _parameters(start: Case, dtype: str) -> Parameters:
    kind = getattr(torch, dtype)
    return {key: nn.Parameter(torch.tensor(value, dtype=kind)) for key, value in start.items()}


def _make(name: str, options: Case, held: Parameters) -> torch.optim.Optimizer:
    plain = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    groups = [{"params": [held["w"], held["u"]]}, {"params": [held["b"]], **_group(options)}]
    optimizer: torch.optim.Optimizer = CLASSES[name](groups, **plain)
    return optimizer


def _steps(
    optimizer: torch.optim.Optimizer, held: Parameters, gradients: Sequence[Case], dtype: str
) -> None:
    for gradient in gradients:
        for key, parameter in held.items():
            given = gradient.get(key)
            parameter.grad = None if given is None else torch.tensor(given, dtype=parameter.dtype)
        optimizer.step()


def tree(value: Any) -> Any:  # noqa: ANN401 - any tree
    """Write a tree of dicts, lists, tuples, tensors and plain values."""
    if isinstance(value, torch.Tensor):
        return {"tensor": values(value), "dtype": str(value.dtype).removeprefix("torch.")}
    if isinstance(value, tuple):
        return {"tuple": [tree(part) for part in value]}
    if isinstance(value, list):
        return [tree(part) for part in value]
    if not isinstance(value, dict):
        return value
    if all(isinstance(key, str) for key in value):
        return {"dict": {key: tree(part) for key, part in value.items()}}
    return {"pairs": [[key, tree(part)] for key, part in value.items()]}
