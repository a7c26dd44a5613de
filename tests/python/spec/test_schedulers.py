"""Schedulers, and their states."""

import json
import math
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Optimizer, lr_scheduler

from bridge import Trainer
from bridge.optim import reference
from bridge.schedulers import create, load_state_dict, state_dict
from tests.python.spec.trainers import equal, everything
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


def sgd() -> Optimizer:
    """Make an optimizer of one group."""
    return torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.5)


def test_schedulers_of_another_optimizer_are_refused() -> None:
    """PyTorch refuses them, in words that C# has too. Spec: R27.2."""
    one, other = sgd(), sgd()
    schedulers = [lr_scheduler.ConstantLR(one), lr_scheduler.ExponentialLR(other, 0.5)]
    with pytest.raises(ValueError, match="expects all schedulers to belong to the same optimizer"):
        create("SequentialLR", one, schedulers=schedulers, milestones=[3])
    with pytest.raises(ValueError, match="expects all schedulers to belong to the same optimizer"):
        create("ChainedScheduler", one, schedulers=schedulers)


def test_divisions_by_zero_are_refused() -> None:
    """What Python cannot divide is refused, in the step or before. Spec: R27.2."""
    with pytest.raises(ZeroDivisionError):
        create("OneCycleLR", sgd(), max_lr=0.5, total_steps=10, pct_start=0.1)
    for name, options in {
        "ConstantLR": {"factor": 0.0, "total_iters": 1},
        "StepLR": {"step_size": 0},
        "PolynomialLR": {"total_iters": 1, "power": -1.0},
        "CosineAnnealingLR": {"T_max": 0},
    }.items():
        scheduler = create(name, sgd(), **options)
        with pytest.raises(ZeroDivisionError):
            scheduler.step()


def test_states_of_other_schedulers_are_refused() -> None:
    """Another number of schedulers is refused, and what JSON cannot hold is too. Spec: R27.3."""
    optimizer = sgd()
    parts = [{"name": "ConstantLR"}, {"name": "ExponentialLR", "gamma": 0.5}]
    chained = create("ChainedScheduler", optimizer, schedulers=parts)
    one = state_dict(create("ChainedScheduler", optimizer, schedulers=parts[:1]))
    with pytest.raises(ValueError, match="of ChainedScheduler: expected 2 states, got 1$"):
        load_state_dict(chained, one)

    class Rate:
        """A callable object with a state."""

        def __init__(self) -> None:
            self.factor = torch.tensor(0.5)

        def __call__(self, _: int) -> float:
            return float(self.factor)

    with pytest.raises(TypeError, match="^state_dict: expected numbers, .* got Tensor$"):
        state_dict(create("LambdaLR", optimizer, lr_lambda=Rate()))


def test_milestones_are_numbers_again() -> None:
    """JSON has strings as keys: a repeated milestone counts twice all the same. Spec: R27.3."""
    first = create("MultiStepLR", sgd(), milestones=[2, 2], gamma=0.5)
    second = create("MultiStepLR", sgd(), milestones=[])
    load_state_dict(second, json.loads(json.dumps(state_dict(first))))
    for _ in range(2):
        second.step()
    assert rates(second.optimizer) == [0.125]


@pytest.mark.parametrize(
    ("name", "option", "text"),
    [
        (
            "Step",
            "gamma",
            "scheduler: expected one of LambdaLR, MultiplicativeLR, StepLR, MultiStepLR, "
            "ConstantLR, LinearLR, ExponentialLR, SequentialLR, CosineAnnealingLR, "
            "ChainedScheduler, ReduceLROnPlateau, CyclicLR, CosineAnnealingWarmRestarts, "
            "OneCycleLR, PolynomialLR, got 'Step'",
        ),
        (
            "StepLR",
            "step",
            "scheduler: expected options of StepLR (step_size, gamma, last_epoch), got 'step'",
        ),
        ("StepLR", "gamma", "scheduler: expected option step_size of StepLR, got ['gamma']"),
    ],
)
def test_other_names_and_options_are_refused(name: str, option: str, text: str) -> None:
    """Names and options that there are not are refused. Spec: R27.4."""
    with pytest.raises(ValueError, match="^scheduler") as caught:
        create(name, sgd(), **{option: 0.5})
    assert str(caught.value) == text


def test_descriptions_have_names() -> None:
    """A description without a name is refused. Spec: R27.4."""
    with pytest.raises(ValueError, match="expected the name of a scheduler, got \\['gamma'\\]$"):
        create("ChainedScheduler", sgd(), schedulers=[{"gamma": 0.5}])


def test_the_trainer_has_no_metric() -> None:
    """The trainer refuses a scheduler that needs a metric. Spec: R27.5."""
    model = nn.Linear(1, 1)
    with pytest.raises(ValueError, match="got ReduceLROnPlateau: step it yourself, after evaluate"):
        Trainer(
            model,
            torch.optim.SGD(model.parameters(), lr=0.5),
            nn.functional.mse_loss,
            scheduler=lr_scheduler.ReduceLROnPlateau,
        )


FAILING: dict[str, Any] = {
    "the end of a cycle": lambda own: create("OneCycleLR", own, max_lr=0.5, total_steps=2),
    "a function of the user's": lambda own: create(
        "LambdaLR", own, lr_lambda=lambda update: 1 / (3 - update)
    ),
    "a division by zero": lambda own: create("ConstantLR", own, factor=0.0, total_iters=3),
    "a chain, after its first part": lambda own: create(
        "ChainedScheduler",
        own,
        schedulers=[
            {"name": "MultiStepLR", "milestones": [1, 1, 3]},
            {"name": "OneCycleLR", "max_lr": 0.5, "total_steps": 2},
        ],
    ),
    "a sequence, in its second part": lambda own: create(
        "SequentialLR",
        own,
        schedulers=[
            {"name": "ExponentialLR", "gamma": 0.5},
            {"name": "MultiplicativeLR", "lr_lambda": lambda epoch: 1 / (1 - epoch)},
        ],
        milestones=[2],
    ),
}


@pytest.mark.parametrize("failure", FAILING)
def test_a_scheduler_that_fails_is_given_back(failure: str) -> None:
    """It is given back exactly, and so are parameters, rates and momentum. Spec: R27.5."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    loss = nn.functional.mse_loss
    trainer = Trainer(model, optimizer, loss, ["cpu"] * 2, scheduler=FAILING[failure])
    batch = (torch.ones(4, 3), torch.zeros(4, 2))
    trainer.step(*batch)
    trainer.step(*batch)
    before = everything(trainer)
    for _ in range(2):
        with pytest.raises((ValueError, ZeroDivisionError)):
            trainer.step(*batch)
        assert equal(before, everything(trainer))
