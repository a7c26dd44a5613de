"""LBFGS, which calls a closure."""

import pytest
import torch

from bridge.optim import create, reference
from tests.python.spec.optimizers import check_parameters, check_state, options_of, parameters_of
from tests.python.spec.vectors import Case, cases, tensor, tree


@cases("lbfgs")
def test_lbfgs(case: Case) -> None:
    """Losses, calls, parameters and states are PyTorch 2.10's. Spec: R9.6, R9.9."""
    _check(case, "2.10")


@cases("lbfgs-1.13")
def test_lbfgs_of_pytorch_1_13(case: Case) -> None:
    """Losses, calls, parameters and states are PyTorch 1.13's. Spec: R9.6, R9.9."""
    _check(case, "1.13")


def _check(case: Case, version: str) -> None:
    """Step once for each tilt."""
    if version != reference():
        pytest.skip(f"torch {torch.__version__} has the formulas of {reference()}")
    held = parameters_of(case)
    optimizer = create("lbfgs", held.values(), **options_of(case))
    calls = 0
    for tilt, expected in zip(case["tilts"], case["losses"], strict=True):
        tilts = [(held[key], tensor(value, case["dtype"])) for key, value in tilt.items()]

        def closure() -> torch.Tensor:
            nonlocal calls
            calls += 1
            optimizer.zero_grad(set_to_none=True)
            terms = [(p * p * p * p * 0.25 + p * t).sum() for p, t in tilts]  # noqa: B023
            loss = torch.stack(terms).sum()
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        loss: torch.Tensor = optimizer.step(closure)  # type: ignore[arg-type,assignment]
        check_state(expected, loss.item(), case["relative"])
    assert calls == case["calls"]
    check_parameters(case, "expected", held)
    check_state(tree(case["state"]), optimizer.state_dict(), case["relative"])
