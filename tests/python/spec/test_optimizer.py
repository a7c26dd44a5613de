"""Optimizers by name, and what they do."""

from typing import Any

import pytest
import torch
from torch import nn

from bridge.optim import OPTIMIZERS, create, reference
from tests.python.spec.optimizers import check_parameters, check_state, options_of, parameters_of
from tests.python.spec.vectors import Case, cases, refusal, tensor, tree

EVERY = pytest.mark.parametrize("name", OPTIMIZERS)


@cases("optimizer")
def test_refusals(case: Case) -> None:
    """Names and options that are refused are those of the vectors. Spec: R9.1."""
    with refusal(case):
        create(case["optimizer"], [nn.Parameter(torch.zeros(1))], **options_of(case))


@cases("optimizers")
def test_every_optimizer(case: Case) -> None:
    """Parameters and states are PyTorch 2.10's. Spec: R9.2, R9.3, R9.4, R9.5, R9.8, R9.9."""
    _check(case, "2.10")


@cases("optimizers-1.13")
def test_every_optimizer_of_pytorch_1_13(case: Case) -> None:
    """Parameters and states are PyTorch 1.13's. Spec: R9.2, R9.3, R9.4, R9.5, R9.8, R9.9."""
    _check(case, "1.13")


def _check(case: Case, version: str) -> None:
    """Step with each set of gradients, save, load, and step on."""
    if version != reference():
        pytest.skip(f"torch {torch.__version__} has the formulas of {reference()}")
    held = parameters_of(case)
    optimizer = _make(case, held)
    _steps(case, "gradients", optimizer, held)
    check_parameters(case, "expected", held)
    check_state(tree(case["state"]), optimizer.state_dict(), case.get("relative", 0))

    twins = parameters_of(case, "expected")
    resumed = _make(case, twins)
    resumed.load_state_dict(tree(case["state"]))
    _steps(case, "more", resumed, twins)
    check_parameters(case, "resumed", twins)


def _make(case: Case, held: dict[str, nn.Parameter]) -> torch.optim.Optimizer:
    groups: Any = [{"params": [held["w"], held["u"]]}, {"params": [held["b"]], **case["group"]}]
    return create(case["optimizer"], groups, **options_of(case))


def _steps(
    case: Case, member: str, optimizer: torch.optim.Optimizer, held: dict[str, nn.Parameter]
) -> None:
    for gradients in case[member]:
        for key, parameter in held.items():
            value = gradients.get(key)
            parameter.grad = None if value is None else tensor(value, case["dtype"])
        optimizer.step()


def test_options_that_came_later() -> None:
    """Options that PyTorch 1.13 lacks are refused with it. Spec: R9.1, R9.7."""
    if reference() != "1.13":
        assert create("radam", [nn.Parameter(torch.zeros(1))], maximize=True)
        return
    text = r"^optimizer: expected options of radam \(lr, betas, eps, weight_decay\), got 'maximize'$"
    with pytest.raises(ValueError, match=text):
        create("radam", [nn.Parameter(torch.zeros(1))], maximize=True)


def test_sgd_has_a_default_rate() -> None:
    """The learning rate is 0.001 unless it is given, in every version of PyTorch. Spec: R9.1."""
    group = create("sgd", [nn.Parameter(torch.zeros(1))]).param_groups[0]
    assert (group["lr"], group["weight_decay"], group["maximize"]) == (1e-3, 0, False)


@EVERY
def test_zero_grad_leaves_none(name: str) -> None:
    """Gradients are None after ``zero_grad(set_to_none=True)``. Spec: R9.4."""
    parameter = nn.Parameter(torch.ones(1))
    parameter.grad = torch.ones(1)
    create(name, [parameter]).zero_grad(set_to_none=True)
    assert parameter.grad is None
