"""Schedulers, and their states."""

import json
import math
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Optimizer

from bridge.optim import reference
from bridge.schedulers import create, load_state_dict, state_dict
from tests.python.spec.vectors import Case, cases, refusal

FILE = "schedulers" if reference() == "2.10" else "schedulers-1.13"
FUNCTIONS = {
    "half": lambda n: 0.5**n,
    "third": lambda n: 1 / (n + 3),
    "cube": lambda n: n * n * n / 8,
}
KINDS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adagrad": torch.optim.Adagrad}


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Step schedulers without their optimizers, and to given epochs, in silence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def optimizer_of(case: Case, groups: list[Case] | None = None) -> Optimizer:
    """Make an optimizer with the groups of a case, or with those that were saved."""
    kind: Any = KINDS[case["optimizer"]]
    made: Optimizer = kind(
        [{"params": [nn.Parameter(torch.zeros(1))], "lr": g["lr"]} for g in case["groups"]],
        **({"lr": 1.0, "momentum": 0.9} if kind is torch.optim.SGD else {}),
    )
    for group, given in zip(made.param_groups, groups or case["groups"], strict=True):
        group.update({key: value for key, value in given.items() if key != "momentum"})
        if "betas" in group and "momentum" in given:
            group["betas"] = (given["momentum"], group["betas"][1])
        elif given.get("momentum") is not None:
            group["momentum"] = given["momentum"]
    return made


def read(value: Any) -> Any:  # noqa: ANN401 - any option
    """Read an option, which may hold functions."""
    if isinstance(value, list):
        return [read(part) for part in value]
    if not isinstance(value, dict):
        return {"inf": math.inf, "-inf": -math.inf}.get(value, value)
    if "function" in value:
        return FUNCTIONS[value["function"]]
    return {key: read(part) for key, part in value.items()}


def make(case: Case, optimizer: Optimizer) -> Any:  # noqa: ANN401 - any scheduler
    """Make the scheduler of a case."""
    return create(case["scheduler"], optimizer, **read(case["options"]))


def steps_of(case: Case) -> list[Any]:
    """List what each step is given."""
    return [
        given if isinstance(given, list) else [] if given is None else [given]
        for given in case.get("steps", [None] * 24)
    ]


def rates(optimizer: Optimizer) -> list[float]:
    """List the learning rates of the groups."""
    return [group["lr"] for group in optimizer.param_groups]


def momentum(optimizer: Optimizer) -> list[float | None]:
    """List the momentum of the groups, or the first beta."""
    return [
        group["betas"][0] if "betas" in group else group.get("momentum")
        for group in optimizer.param_groups
    ]


@cases(FILE)
def test_schedulers(case: Case) -> None:
    """Schedulers give the bits, errors and states of this PyTorch. Spec: R27.1, R27.2, R27.3."""
    lr, moved = [], []
    saved = case.get("saved", {"steps": -1})
    optimizer = optimizer_of(case)
    with refusal(case):
        scheduler = make(case, optimizer)
        for done, given in enumerate([None, *steps_of(case)]):
            if given is not None:
                scheduler.step(*given)
            lr.append(rates(optimizer))
            moved.append(momentum(optimizer))
            if done == saved["steps"]:
                assert state_dict(scheduler) == read(saved["state"])
    assert lr == case["expected"]["lr"]
    assert moved == case["expected"].get("momentum", moved)


@cases(FILE)
def test_saved_states(case: Case) -> None:
    """A scheduler goes on from a state that was written in the middle. Spec: R27.3."""
    if "saved" not in case:
        return
    saved = case["saved"]
    scheduler = make(case, optimizer_of(case))
    load_state_dict(scheduler, read(saved["state"]))
    scheduler.optimizer.param_groups[:] = optimizer_of(case, saved["groups"]).param_groups
    for given, expected in zip(
        steps_of(case)[saved["steps"] :], case["expected"]["lr"][saved["steps"] + 1 :], strict=True
    ):
        scheduler.step(*given)
        assert rates(scheduler.optimizer) == expected


@cases(FILE)
def test_states_at_any_step(case: Case) -> None:
    """A scheduler that takes a state after any step goes on as its writer. Spec: R27.3."""
    if "raises" in case:
        return
    steps = steps_of(case)
    for done in range(0, len(steps), 3):
        first = make(case, optimizer_of(case))
        for given in steps[:done]:
            first.step(*given)
        second = make(case, optimizer_of(case))
        written = state_dict(first)
        load_state_dict(second, json.loads(json.dumps(written)))
        assert state_dict(second) == written
        second.optimizer.load_state_dict(first.optimizer.state_dict())
        for given, expected in zip(steps[done:], case["expected"]["lr"][done + 1 :], strict=True):
            second.step(*given)
            assert rates(second.optimizer) == expected
