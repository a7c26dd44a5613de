"""Say the numbers of a parity report in the same words everywhere."""

import math
from collections.abc import Mapping
from typing import Any

LIMIT_ULP32 = 1 / 64
"""Rule `float32` takes two values as identical below this distance, in ulps of float32."""

RULES = {
    "bitwise": "Two values are identical where every bit is the same.",
    "float32": (
        "Two values are identical where they differ by less than 1/64 of the spacing of "
        "float32 numbers of their size: they are the same number at float32's precision."
    ),
}


def named(number: float) -> float | str:
    """Give a finite number back, and the name of any other: JSON has no sign for those."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return number


def count(number: int | None) -> str:
    """Write a whole number with thousands separated: 129,068."""
    return "unknown" if number is None else f"{number:,}"


def share(part: int | None, whole: int) -> str:
    """Write how many of a whole: all 150, none of 150, 12 of 150."""
    if whole and part == whole:
        return f"all {count(whole)}"
    return f"{'none' if part == 0 else count(part)} of {count(whole)}"


def magnitude(number: float | str | None) -> str:
    """Write a difference with two digits: 2.0e-15, and an exact zero as 0."""
    return _written(number, ".1e")


def ulps(number: float | str | None) -> str:
    """Write a distance in ulps of float32: 0.0002, 3.1, 92,000."""
    large = number is not None and abs(float(number)) >= 10  # noqa: PLR2004
    return _written(number, ",.0f" if large else ".2g")


def ratio(number: float | str | None) -> str:
    """Write an accuracy or a loss with four decimals: 0.8512."""
    return _written(number, ".4f")


def duration(seconds: float) -> str:
    """Write a span of time in seconds: 130.2 s."""
    return f"{seconds:,.1f} s"


def plain(value: object) -> str:
    """Write the value of an option for a reader: yes, no, none, and lists without brackets."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(plain(item) for item in value)
    return str(value)


def verdict(report: Mapping[str, Any]) -> str:
    """Say the verdict of a report in one line, with the rule and the numbers behind it."""
    first = report["first_divergence"]
    if report["verdict"] == "identical":
        found = f"identical: {count(report['parameters'])} parameters"
    elif report["verdict"] == "diverged" and first is not None:
        found = f"diverged at step {count(first['step'])} in {first['parameter']}: "
        found += f"{share(report['identical'], report['parameters'])} parameters identical"
    else:
        return f"{report['verdict']}: {report['reason']}"
    return (
        f"{found} by rule {report['rule']}, "
        f"largest difference {magnitude(report['max_abs_difference'])} "
        f"({ulps(report['max_ulp32'])} ulp32) after {steps(report)}"
    )


def steps(report: Mapping[str, Any]) -> str:
    """Say how many steps ran, and how many were planned where that is another number."""
    done, planned = report["steps"], report["planned_steps"]
    text = f"{count(done)} step{'' if done == 1 else 's'}"
    if done != planned:
        text += f" of {count(planned)}"
    return text + (" (interrupted)" if report["interrupted"] else "")


def _written(number: float | str | None, form: str) -> str:
    """Write a number that may be missing, or may not be finite, in a form."""
    if number is None:
        return "unknown"
    value = named(float(number))
    if isinstance(value, str):
        return value
    return "0" if value == 0 and form != ".4f" else format(value, form)
