"""What schedulers refuse, in PyTorch's words and in those of both languages."""

import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Optimizer, lr_scheduler

from bridge.schedulers import create, load_state_dict, state_dict


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Step schedulers without their optimizers, in silence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


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
    cases_by_name: dict[str, dict[str, Any]] = {
        "ConstantLR": {"factor": 0.0, "total_iters": 1},
        "StepLR": {"step_size": 0},
        "PolynomialLR": {"total_iters": 1, "power": -1.0},
        "CosineAnnealingLR": {"T_max": 0},
    }
    for name, options in cases_by_name.items():
        scheduler = create(name, sgd(), **options)
        with pytest.raises(ZeroDivisionError):
            scheduler.step()


def test_states_of_other_schedulers_are_refused() -> None:
    """Another number of schedulers is refused, and what JSON cannot hold is too. Spec: R27.3."""
    optimizer = sgd()
    parts = [{"name": "ConstantLR"}, {"name": "ExponentialLR", "gamma": 0.5}]
    chained = create("ChainedScheduler", optimizer, schedulers=parts)
    one = state_dict(create("ChainedScheduler", optimizer, schedulers=parts[:1]))
    with pytest.raises(ValueError, match=r"of ChainedScheduler: expected 2 states, got 1$"):
        load_state_dict(chained, one)

    class Rate:
        """A callable object with a state."""

        def __init__(self) -> None:
            self.factor = torch.tensor(0.5)

        def __call__(self, _: int) -> float:
            return float(self.factor)

    with pytest.raises(TypeError, match=r"^state_dict: expected numbers, .* got Tensor$"):
        state_dict(create("LambdaLR", optimizer, lr_lambda=Rate()))


def test_milestones_are_numbers_again() -> None:
    """JSON has strings as keys: a repeated milestone counts twice all the same. Spec: R27.3."""
    first = create("MultiStepLR", sgd(), milestones=[2, 2], gamma=0.5)
    second = create("MultiStepLR", sgd(), milestones=[])
    load_state_dict(second, json.loads(json.dumps(state_dict(first))))
    for _ in range(2):
        second.step()
    assert second.optimizer.param_groups[0]["lr"] == 0.125


@pytest.mark.parametrize(
    ("name", "option", "text"),
    [
        (
            "Step",
            "gamma",
            (
                "scheduler: expected one of LambdaLR, MultiplicativeLR, StepLR, MultiStepLR, "
                "ConstantLR, LinearLR, ExponentialLR, SequentialLR, CosineAnnealingLR, "
                "ChainedScheduler, ReduceLROnPlateau, CyclicLR, CosineAnnealingWarmRestarts, "
                "OneCycleLR, PolynomialLR, got 'Step'"
            ),
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
    with pytest.raises(ValueError, match=r"^scheduler") as caught:
        create(name, sgd(), **{option: 0.5})
    assert str(caught.value) == text


def test_descriptions_have_names() -> None:
    """A description without a name is refused. Spec: R27.4."""
    with pytest.raises(ValueError, match=r"expected the name of a scheduler, got \['gamma'\]$"):
        create("ChainedScheduler", sgd(), schedulers=[{"gamma": 0.5}])
