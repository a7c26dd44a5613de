"""Optimizers as the vectors describe them, and their states."""

from typing import Any

import torch
from torch import nn

from tests.python.spec.vectors import Case, assert_close, number, tensor, tree


def options_of(case: Case) -> Case:
    """Read options, which may be ``"nan"``."""
    return {
        name: number(value) if value == "nan" else tree(value)
        for name, value in case["options"].items()
    }


def parameters_of(case: Case, member: str = "parameters") -> dict[str, nn.Parameter]:
    """Read parameters."""
    return {
        key: nn.Parameter(tensor(value, case["dtype"])) for key, value in case[member].items()
    }


def check_parameters(case: Case, member: str, held: dict[str, nn.Parameter]) -> None:
    """Compare parameters, within the share that a case allows."""
    for key, value in case[member].items():
        expected = tensor(value, case["dtype"])
        assert_close(held[key].detach(), expected, case.get("relative", 0))


def check_state(expected: Any, actual: Any, relative: float) -> None:  # noqa: ANN401 - any tree
    """Compare two states: types, keys and their order, and tensors within a share."""
    assert type(expected) is type(actual)
    if isinstance(expected, torch.Tensor):
        assert_close(actual, expected, relative)
    elif isinstance(expected, dict):
        assert list(actual) == list(expected)
        check_state(list(expected.values()), list(actual.values()), relative)
    elif isinstance(expected, list | tuple):
        assert len(actual) == len(expected)
        for one, other in zip(expected, actual, strict=True):
            check_state(one, other, relative)
    elif isinstance(expected, float):
        assert abs(actual - expected) <= relative * abs(expected)
    else:
        assert actual == expected
