"""Faults inside of a layer that only whole tensors show."""

from typing import Any

import numpy as np

from bridge.trace.evidence import Evidence
from bridge.trace.finding import Finding, finding
from bridge.trace.outcome import Divergence
from bridge.trace.signatures.formulas import ACTIVATIONS, matching
from bridge.trace.signatures.layer import held, input_of, type_of
from bridge.trace.signs import Numbers

EXACT = 1e-5


def weight(evidence: Evidence, item: Divergence) -> list[Finding]:
    """An output by the transposed weight, where tensors are whole.

    Spec: R35.5
    """
    source, matrix = input_of(evidence, item), held(evidence, item, "weight")
    x, w, b = evidence.a.full(source), evidence.a.full(matrix), evidence.b.full(item.port)
    if x is None or w is None or b is None or w.ndim != 2 or w.shape[0] != w.shape[1]:  # noqa: PLR2004
        return []
    if x.shape[-1] != w.shape[0]:
        return []
    bias = evidence.a.full(held(evidence, item, "bias"))
    wanted = x @ w + (0.0 if bias is None else bias)
    if wanted.shape != b.shape or not np.allclose(wanted, b, rtol=EXACT, atol=EXACT):
        return []
    return [
        finding(
            "transposed weight",
            f"{item.record.name} multiplies by its weight transposed in the port.",
            item,
            1.0,
        )
    ]


def function(evidence: Evidence, item: Divergence) -> list[Finding]:
    """Another function, where tensors are whole.

    Spec: R35.5
    """
    x = evidence.a.full(input_of(evidence, item))
    a, b = evidence.a.full(item.reference), evidence.b.full(item.port)
    if x is None or a is None or b is None:
        return []
    ours, theirs = (matching(ACTIVATIONS, (x,), wanted) for wanted in (a, b))
    if ours is None or theirs is None or ours == theirs:
        return []
    both = all("softmax over" in side for side in (ours, theirs))
    name = "softmax over another dimension" if both else "wrong activation"
    return [
        finding(
            name,
            f"{item.record.name} computes {ours} in the reference and {theirs} in the port.",
            item,
            1.0,
        )
    ]


def eps(evidence: Evidence, item: Divergence) -> list[Finding]:
    """A normalization over the last dimension with another eps, where tensors are whole.

    Spec: R35.5
    """
    x = evidence.a.full(input_of(evidence, item))
    a, b = evidence.a.full(item.reference), evidence.b.full(item.port)
    if x is None or a is None or b is None or "Norm" not in type_of(evidence, item):
        return []
    variances = x.var(axis=-1, keepdims=True)
    both = [evidence.a.full(held(evidence, item, name)) for name in ("weight", "bias")]
    weight = np.ones(1) if both[0] is None else both[0]
    bias = np.zeros(1) if both[1] is None else both[1]
    centered = (x - x.mean(axis=-1, keepdims=True)) * weight
    found = [_solved(centered, variances, side - bias) for side in (a, b)]
    ours, theirs = found
    if ours is None or theirs is None:
        return []
    return [
        finding(
            "eps of the normalization",
            f"{item.record.name} adds eps {theirs:.3g} to the variance in "
            f"the port, {ours:.3g} in the reference.",
            item,
            0.98,
            reference=ours,
            port=theirs,
        )
    ]


def _solved(centered: Numbers, variances: Numbers, output: Numbers) -> float | None:
    """Solve ``output = centered / sqrt(variance + eps)`` for eps, if it is one number."""
    with np.errstate(all="ignore"):
        values = (centered / output) ** 2 - variances
    values = values[np.isfinite(values) & (np.abs(output) > EXACT)]
    if not values.size:
        return None
    middle = float(np.median(values))
    return (
        middle if float(np.median(np.abs(values - middle))) < EXACT + 0.05 * abs(middle) else None
    )


def border(evidence: Evidence, item: Divergence) -> list[Finding]:
    """A convolution that differs at the border alone, where tensors are whole.

    Spec: R35.5
    """
    a, b = evidence.a.full(item.reference), evidence.b.full(item.port)
    if a is None or b is None or a.ndim < 3 or "Conv" not in type_of(evidence, item):  # noqa: PLR2004
        return []
    differs = ~np.isclose(a, b, rtol=EXACT, atol=EXACT * np.abs(a).max())
    within: tuple[Any, ...] = (..., *[slice(1, -1)] * (a.ndim - 2))
    inner = differs[within]
    if not inner.size or inner.any() or not differs.any():
        return []
    share = float(differs.mean())
    return [
        finding(
            "wrong padding",
            f"The output of {item.record.name} differs at its border alone: it is "
            "padded by other values.",
            item,
            0.95,
            share=share,
        )
    ]
