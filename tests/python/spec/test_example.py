"""The examples, each as a whole."""

import math

import pytest
import torch

from bridge.examples import NAMES, Result, Setting, find
from tests.python.spec.vectors import Case, cases, refusal

STEPS = {"data_parallel": 2}
"""Of the example that takes a second for each; else 6: an epoch, and a step that accumulates."""


def run(name: str, replicas: int, steps: int) -> Result:
    """Run an example in float64."""
    pytest.importorskip(f"bridge.examples.{name}")
    lines: list[str] = []
    result = find(name)(Setting(steps=steps, replicas=replicas, dtype="float64"), lines.append)
    assert len(lines) >= steps
    return result


@cases("example")
def test_setting(case: Case) -> None:
    """Defaults and limits are those of the vectors. Spec: R23.1."""
    with refusal(case):
        setting = Setting(**case["setting"])
        for name, expected in case["expected"].items():
            assert getattr(setting, name) == expected, name


def test_another_name_is_refused() -> None:
    """The error lists the names that there are. Spec: R23.1."""
    with pytest.raises(
        ValueError, match=f"^example: expected one of {', '.join(NAMES)}, got lenet$"
    ):
        find("lenet")


@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_replicas_are_one_model(name: str, replicas: int) -> None:
    """It trains, and ends where one undivided model ends, but for rounding. Spec: R23.3."""
    steps = STEPS.get(name, 6)
    result = run(name, replicas, steps)
    assert len(result.losses) == steps
    assert all(map(math.isfinite, [*result.losses, *result.numbers.values()]))
    differences = [value for key, value in result.numbers.items() if "difference" in key]
    assert differences
    assert max(differences) < 1e-10


@pytest.mark.parametrize("name", NAMES)
def test_again_is_the_same(name: str) -> None:
    """The same setting leaves the same bits, run after run. Spec: R23.2."""
    one, other = run(name, 2, 2), run(name, 2, 2)
    assert one.losses == other.losses
    assert list(one.state) == list(other.state)
    assert all(torch.equal(one.state[key], other.state[key]) for key in one.state)
