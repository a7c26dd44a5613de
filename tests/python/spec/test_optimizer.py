"""Optimizers by name, and what they do."""

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from bridge.optim import create, reference
from tests.python.spec.vectors import Case, assert_close, cases, number, refusal, tensor


def options_of(case: Case) -> Case:
    """Read options, which may be ``"nan"``."""
    return {
        name: number(value) if isinstance(value, str) else value
        for name, value in case["options"].items()
    }


def states(name: str, case: Case) -> Iterator[dict[str, torch.Tensor]]:
    """Step with each set of gradients, and give the parameters after it."""
    start = {key: tensor(value, case["dtype"]) for key, value in case["parameters"].items()}
    parameters = {key: nn.Parameter(value) for key, value in start.items()}
    optimizer = create(name, parameters.values(), **options_of(case))
    for gradients in case["gradients"]:
        for key, parameter in parameters.items():
            value = gradients[key]
            parameter.grad = None if value is None else tensor(value, case["dtype"])
        optimizer.step()
        yield {key: parameter.detach().clone() for key, parameter in parameters.items()}


def check(name: str, case: Case) -> None:
    """Compare the parameters after each step."""
    for actual, values in zip(states(name, case), case["expected"], strict=True):
        for key, value in values.items():
            assert_close(actual[key], tensor(value, case["dtype"]), case.get("relative", 0))


@cases("optimizer")
def test_refusals(case: Case) -> None:
    """Names and options that are refused are those of the vectors. Spec: R9.1."""
    with refusal(case):
        create(case["optimizer"], [nn.Parameter(torch.zeros(1))], **options_of(case))


@cases("sgd")
def test_sgd(case: Case) -> None:
    """SGD gives the bits of the vectors after every step. Spec: R9.2, R9.4."""
    check("sgd", case)


@cases("adam")
def test_adam(case: Case) -> None:
    """Adam gives the bits of PyTorch 2.10's formula. Spec: R9.3, R9.4."""
    _skip_other_formulas(case)
    check("adam", case)


@cases("adam-1.13")
def test_adam_of_pytorch_1_13(case: Case) -> None:
    """Adam gives the bits of PyTorch 1.13's formula. Spec: R9.3, R9.4."""
    _skip_other_formulas(case)
    check("adam", case)


def _skip_other_formulas(case: Case) -> None:
    """Skip a vector of another formula than that of the torch that runs."""
    if case["reference"] != reference():
        pytest.skip(f"torch {torch.__version__} has the formula of {reference()}")


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_defaults(name: str) -> None:
    """The learning rate is 0.001 unless it is given, in every version of PyTorch. Spec: R9.1."""
    group = create(name, [nn.Parameter(torch.zeros(1))]).param_groups[0]
    assert (group["lr"], group["weight_decay"], group["maximize"]) == (1e-3, 0, False)


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_zero_grad_leaves_none(name: str) -> None:
    """Gradients are None after ``zero_grad(set_to_none=True)``. Spec: R9.4."""
    parameter = nn.Parameter(torch.ones(1))
    parameter.grad = torch.ones(1)
    create(name, [parameter]).zero_grad(set_to_none=True)
    assert parameter.grad is None


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_parameter_without_gradient_gets_no_state(name: str) -> None:
    """What has no gradient is not touched, nor is a state made for it. Spec: R9.4."""
    parameters = [nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))]
    optimizer = create(name, parameters, lr=0.5)
    parameters[0].grad = torch.ones(1)
    optimizer.step()
    assert parameters[1].item() == 1
    assert parameters[1] not in optimizer.state
