"""From what a run left to its verdict."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bridge.parity import wording
from bridge.parity.twins import Divergence, Twins


def judge(twins: Twins, series: Sequence[Mapping[str, Any]], error: str | None) -> dict[str, Any]:
    """Judge a run: ``identical``, ``diverged``, or ``incomparable`` where it could not be told.

    ``identical`` needs at least one step, finite losses, identical batches, losses and states at
    every step, and every trainable tensor moved from its start on both sides.

    Args:
        twins: both sides, after their last step.
        series: the steps that ran.
        error: what ended the run early, if anything did.

    Returns:
        The part of the report that holds the verdict, the counts and the tensors.

    Spec: R15.4, R15.5
    """
    moved = twins.moved()
    tensors: list[dict[str, Any]] = [
        {**asdict(tensor), "shape": list(tensor.shape), "moved": moved.get(tensor.name)}
        for tensor in twins.latest
    ]
    counts = {
        key: sum(tensor[key] for tensor in tensors)
        for key in ("identical", "bit_equal", "bit_equal_float32")
    }
    worst = {
        key: max(float(tensor[key]) for tensor in tensors)
        for key in ("max_abs_difference", "max_ulp32")
    }
    parameters = sum(tensor["values"] for tensor in tensors)
    verdict, reason = _verdict(twins, series, error, moved)
    first = twins.first_divergence
    return {
        "verdict": verdict,
        "reason": reason,
        "rule": twins.rule,
        "dtype": twins.options.dtype,
        "steps": len(series),
        "error": error,
        "parameters": parameters,
        **counts,
        **worst,
        "first_divergence": None if first is None else asdict(first),
        "tensors": tensors,
    }


def _verdict(
    twins: Twins,
    series: Sequence[Mapping[str, Any]],
    error: str | None,
    moved: Mapping[str, bool],
) -> tuple[str, str]:
    """Choose the verdict and the sentence that says why."""
    if twins.first_divergence is not None:
        return "diverged", _difference(twins.first_divergence, twins.rule)
    if error is not None:
        return "incomparable", f"The run failed after {len(series)} steps: {error.splitlines()[0]}"
    if not series:
        return "incomparable", "No step ran."
    for step in series:
        for side, name in (("python", "Python"), ("csharp", "C#")):
            if not math.isfinite(step[side]):
                return "diverged", f"The loss of {name} at step {step['step']} is {step[side]}."
    still = [name for name, done in moved.items() if not done]
    if still:
        return "diverged", f"Training never moved {', '.join(still)} from the start."
    worst = max(step["difference"] for step in series)
    ulp = max(step["ulp32"] for step in series)
    return "identical", (
        f"Batches, losses and parameters were identical after each of {len(series)} steps by rule "
        f"{twins.rule}; the largest difference at any step was {wording.magnitude(worst)} "
        f"({wording.ulps(ulp)} ulp32)."
    )


def _difference(first: Divergence, rule: str) -> str:
    """Say what differs first."""
    if first.parameter == "batch":
        return f"The batches of step {first.step} differ."
    what = "The losses" if first.parameter == "loss" else f"The values of {first.parameter}"
    when = "before the first step" if first.step == 0 else f"at step {first.step}"
    return (
        f"{what} differ first, {when}: by {wording.magnitude(first.max_abs_difference)} "
        f"({wording.ulps(first.max_ulp32)} ulp32), which rule {rule} does not allow."
    )
