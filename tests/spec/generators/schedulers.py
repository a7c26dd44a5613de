"""What PyTorch's own schedulers do."""

import math
import warnings
from typing import Any

import torch
from torch import nn

from tests.spec.generators.scheduler_cases import (
    CASES,
    FRACTIONS,
    FUNCTIONS,
    JUMPS,
    METRICS,
    NEW,
    RESUMED,
    RISEN,
    START,
    STEPS,
    Case,
)

ABOUT = (
    "A scheduler moves an optimizer with two groups: by 'expected' these have the rates 'lr' (and "
    "'momentum', or the first beta) after its construction and after each step by the rules of "
    "PyTorch {reference}. 'groups' are their entries before. 'steps' are the arguments of step: "
    "null is none, a list holds several, what is not there is 24 times null. {{'function': name}} "
    "is one of half(n) = 0.5 ** n, third(n) = 1 / (n + 3), cube(n) = n * n * n / 8. 'saved' is "
    "what there is after so many steps: the entries of the groups and the state."
)


def schedulers(reference: str) -> Case:
    """Step every scheduler by the rules of the PyTorch that runs."""
    jobs = [
        {"scheduler": name, "options": options} | _around(name, options)
        for name, sets in CASES.items()
        for options in sets
    ]
    jobs += [
        {"scheduler": name, "options": options, "steps": JUMPS}
        for name in CASES
        if "Plateau" not in name and name not in {"SequentialLR", "ChainedScheduler"}
        for options in CASES[name][1:2]
    ]
    cycle, sweep = CASES["OneCycleLR"][1], CASES["CyclicLR"][1]
    restarts = [{"T_0": 4}, {"T_0": 3, "T_mult": 2}]
    jobs += [
        {"scheduler": "OneCycleLR", "options": cycle, "optimizer": "adam"},
        {"scheduler": "OneCycleLR", "options": cycle, "optimizer": "adagrad"},
        {"scheduler": "CyclicLR", "options": sweep, "optimizer": "adam"},
        {"scheduler": "CyclicLR", "options": sweep, "optimizer": "adagrad"},
        {"scheduler": "StepLR", "options": {"step_size": 3, "last_epoch": 4}, "groups": START},
        *(
            {"scheduler": "CosineAnnealingWarmRestarts", "options": options, "steps": FRACTIONS}
            for options in restarts
        ),
        {"scheduler": "CosineAnnealingWarmRestarts", "options": {"T_0": 4}, "steps": [-1]},
        {"scheduler": "ReduceLROnPlateau", "options": {}, "steps": [None]},
        {"scheduler": "ReduceLROnPlateau", "options": {}, "steps": [1.0, [2.0, 7], 3.0]},
        {"scheduler": "SequentialLR", "options": CASES["SequentialLR"][0], "steps": [None, 3]},
        {"scheduler": "ChainedScheduler", "options": CASES["ChainedScheduler"][0], "steps": [3]},
    ]
    jobs += NEW if reference != "1.13" else []
    cases = [_case(number, job, reference) for number, job in enumerate(jobs, 1)]
    return {"about": ABOUT.format(reference=reference), "cases": cases}


def make(case: Case, optimizer: torch.optim.Optimizer) -> Any:  # noqa: ANN401 - any scheduler
    """Make the scheduler of a case, and those that it has."""
    options = {key: _read(value, optimizer) for key, value in case.items() if key != "name"}
    factory = getattr(torch.optim.lr_scheduler, case["name"])
    return factory(**options) if "Chained" in case["name"] else factory(optimizer, **options)


def _around(name: str, options: Case) -> Case:
    """Choose what a scheduler starts from, and its steps."""
    if "last_epoch" in options:
        return {"groups": RISEN if name == "OneCycleLR" else RESUMED}
    return {"steps": METRICS} if name == "ReduceLROnPlateau" else {}


def _case(number: int, job: Case, reference: str) -> Case:
    """Make a scheduler, and step it to the end or to its failure."""
    case: Case = {"name": f"{number}, {job['scheduler']}", "spec": ["R27.1"]}
    case |= {"optimizer": "sgd", "groups": START, **job, "reference": reference}
    optimizer = _optimizer(case)
    steps = case.get("steps", [None] * STEPS)
    lr, momentum = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            scheduler = make({"name": case["scheduler"], **case["options"]}, optimizer)
            for done, argument in enumerate([None, *steps]):
                if done:
                    scheduler.step(*_arguments(argument))
                lr.append([group["lr"] for group in optimizer.param_groups])
                momentum.append([_momentum(group) for group in optimizer.param_groups])
                if done == len(steps) // 3:
                    saved = {"steps": done, "groups": _groups(optimizer)}
                    case["saved"] = saved | {"state": _state(scheduler.state_dict())}
        except (ValueError, TypeError, KeyError) as error:
            case["raises"] = {type(error).__name__: error.args[0]}
            case.pop("saved", None)
    case["expected"] = {"lr": lr}
    if momentum != momentum[:1] * len(lr):
        case["expected"]["momentum"] = momentum
    return case


def _optimizer(case: Case) -> torch.optim.Optimizer:
    kind = {"sgd": "SGD", "adam": "Adam", "adagrad": "Adagrad"}[case["optimizer"]]
    options = {"momentum": 0.9} if kind == "SGD" else {}
    groups = [{"params": [nn.Parameter(torch.zeros(1))], **group} for group in case["groups"]]
    made: torch.optim.Optimizer = getattr(torch.optim, kind)(groups, lr=1.0, **options)
    return made


def _read(value: Any, optimizer: torch.optim.Optimizer) -> Any:  # noqa: ANN401
    if isinstance(value, list):
        return [_read(part, optimizer) for part in value]
    if not isinstance(value, dict):
        return value
    return FUNCTIONS[value["function"]] if "function" in value else make(value, optimizer)


def _arguments(argument: Any) -> list[Any]:  # noqa: ANN401
    if isinstance(argument, list):
        return argument
    return [] if argument is None else [argument]


def _momentum(group: Case) -> float | None:
    return group["betas"][0] if "betas" in group else group.get("momentum")


def _groups(optimizer: torch.optim.Optimizer) -> list[Case]:
    """List the entries that schedulers read and write."""
    names = ("lr", "initial_lr", "max_lr", "min_lr", "max_momentum", "base_momentum")
    return [
        {name: group[name] for name in names if name in group} | {"momentum": _momentum(group)}
        for group in optimizer.param_groups
    ]


def _state(value: Any) -> Any:  # noqa: ANN401
    """Write a state as JSON: a Counter as a dict, without methods and functions."""
    if isinstance(value, dict):
        return {str(key): _state(part) for key, part in value.items() if not callable(part)}
    if isinstance(value, list | tuple):
        return [_state(part) for part in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value
