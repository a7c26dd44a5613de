"""How the numbers of a report are said."""

from collections.abc import Callable
from typing import Any

import pytest

from bridge.parity import wording

MakeReport = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"steps": 469},
            (
                "identical: 129,068 parameters by rule float32, largest difference 2.2e-15 "
                "(5.8e-07 ulp32) after 469 steps"
            ),
        ),
        (
            {"steps": 1, "rule": "bitwise", "max_abs_difference": 0.0, "max_ulp32": 0.0},
            (
                "identical: 129,068 parameters by rule bitwise, largest difference 0 (0 ulp32) "
                "after 1 step"
            ),
        ),
        (
            {"steps": 40, "diverged_at": 3, "planned_steps": 50, "interrupted": True},
            (
                "diverged at step 3 in conv1.weight: 128,900 of 129,068 parameters identical "
                "by rule float32, largest difference 7.6e-05 (20,401 ulp32) "
                "after 40 steps of 50 (interrupted)"
            ),
        ),
        ({"steps": 0}, "incomparable: No step was made."),
        ({"verdict": "diverged", "reason": "The loss is NaN."}, "diverged: The loss is NaN."),
    ],
)
def test_verdict(options: dict[str, Any], said: str, make_report: MakeReport) -> None:
    """The verdict line names the rule and the numbers behind it."""
    assert wording.verdict(make_report(**options)) == said


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0.0, ("0", "0", "0.0000")),
        (2e-15, ("2.0e-15", "2e-15", "0.0000")),
        (0.0002, ("2.0e-04", "0.0002", "0.0002")),
        (91805.0, ("9.2e+04", "91,805", "91805.0000")),
        (float("nan"), ("NaN", "NaN", "NaN")),
        ("-Infinity", ("-Infinity", "-Infinity", "-Infinity")),
        (None, ("unknown", "unknown", "unknown")),
    ],
)
def test_numbers(number: float | str | None, said: tuple[str, str, str]) -> None:
    """A float, its name in the data and a missing one are all said as what they are."""
    assert (wording.magnitude(number), wording.ulps(number), wording.ratio(number)) == said


def test_shares_and_options() -> None:
    """Whole, none and part are told apart, and options read without Python's signs."""
    assert wording.share(150, 150) == "all 150"
    assert wording.share(0, 1500) == "none of 1,500"
    assert wording.share(0, 0) == "none of 0"
    assert wording.share(12, 150) == "12 of 150"
    assert wording.plain([True, None, 0.001, "cpu"]) == "yes, none, 0.001, cpu"


def test_limit_is_the_one_that_the_comparison_uses() -> None:
    """The line in the chart is where the rule draws it."""
    compare = pytest.importorskip("bridge.parity.compare", reason="the comparison needs torch")
    assert 1 / compare.SHARE == wording.LIMIT_ULP32
