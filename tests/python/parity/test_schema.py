"""The schema of a parity report."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridge.parity import report as report_module

jsonschema = pytest.importorskip("jsonschema")

Report = dict[str, Any]
SCHEMA = json.loads(Path(report_module.__file__).with_name("report.schema.json").read_bytes())


def test_schema_is_one() -> None:
    """The schema follows the schema of schemas."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_reports_follow_it(every_report: Report) -> None:
    """The data of every kind of run is what the schema describes."""
    assert _errors(every_report) == []


def test_numbers_that_are_not_finite_follow_it(make_report: Callable[..., Report]) -> None:
    """Their names are numbers to the schema."""
    report = make_report(max_abs_difference=math.inf)
    report["series"][3] |= {"python": math.nan, "csharp": -math.inf}
    assert _errors(report) == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"verdict": "fine"}, "'fine' is not one of"),
        ({"rule": None}, "None is not one of"),
        ({"planned_steps": -1}, "-1 is less than the minimum of 0"),
        ({"extra": 1}, "'extra' was unexpected"),
    ],
)
def test_others_do_not(change: Report, error: str, make_report: Callable[..., Report]) -> None:
    """A word that is none of its own, a number out of range and a key too many are seen."""
    (message,) = _errors(make_report(**change))
    assert error in message


def _errors(report: Report) -> list[str]:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    return [error.message for error in validator.iter_errors(report_module.strict(report))]
