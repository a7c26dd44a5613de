"""Faults inside of a layer: its output is not what its inputs and weights give."""

from typing import Any

import numpy as np

from bridge.trace.evidence import Evidence
from bridge.trace.finding import Finding, finding
from bridge.trace.linear import close, fit, project, vector
from bridge.trace.outcome import Divergence
from bridge.trace.record import Record
from bridge.trace.signatures.between import scaled
from bridge.trace.signatures.formulas import ACTIVATIONS, matching
from bridge.trace.signatures.setup import contents, permuted
from bridge.trace.signs import Numbers

EXACT = 1e-5


def signatures(evidence: Evidence, item: Divergence) -> list[Finding]:
    """Explain the output of a layer by its inputs, its weights and the reference's output.

    Spec: R35.4
    """
    return (
        _effect(evidence, item)
        or _bias(evidence, item)
        or scaled(evidence, item)
        or _weight(evidence, item)
        or _function(evidence, item)
        or _eps(evidence, item)
        or _border(evidence, item)
        or _order(item)
    )


def _input(evidence: Evidence, item: Divergence) -> Record | None:
    """Return what went into the call."""
    own = item.record
    found = evidence.a.of_step(own.step, "forward", "input", own.replica)
    return next((r for r in found if (r.name, r.call) == (own.name, own.call)), None)


def _type(evidence: Evidence, item: Divergence) -> str:
    """Return the type of the layer."""
    configured = evidence.a.of_step(0, "init", "configuration")
    return next(
        (str(r.value) for r in configured if (r.name, r.part) == (item.record.name, "type")), ""
    )


def _held(evidence: Evidence, item: Divergence, name: str) -> Record | None:
    """Return a parameter of the layer as the step began."""
    full = f"{item.record.name}.{name}" if item.record.name else name
    step = item.record.step
    phase, at = ("step", step - 1) if step else ("init", 0)
    found = evidence.a.of_step(at, phase, "parameter", item.record.replica)
    return next((r for r in found if r.name == full), None)


def _effect(evidence: Evidence, item: Divergence) -> list[Finding]:
    """A layer that does nothing on one side, above all dropout."""
    source = _input(evidence, item)
    if source is None or source.tensor is None:
        return []
    a, b = contents(item)
    name = item.record.name
    drops = "Dropout" in _type(evidence, item)
    if drops and a.digest == source.tensor.digest:
        return [
            finding(
                "dropout active",
                f"{name} drops values in the port, and none in the reference.",
                item,
                1.0,
            )
        ]
    if drops and b.digest == source.tensor.digest:
        return [
            finding(
                "dropout inactive",
                f"{name} drops values in the reference, and none in the port.",
                item,
                1.0,
            )
        ]
    if drops:
        return [
            finding(
                "other random draws",
                f"{name} drops other values in the port: another seed, or another order of draws.",
                item,
                0.8,
            )
        ]
    if b.digest == source.tensor.digest:
        return [
            finding(
                "layer without effect", f"{name} gives its input as it is in the port.", item, 1.0
            )
        ]
    return []


def _bias(evidence: Evidence, item: Divergence) -> list[Finding]:
    """An output that lacks the bias."""
    a, b = contents(item)
    bias = evidence.a.full(_held(evidence, item, "bias"))
    ours, theirs = vector(a), vector(b)
    if bias is None or ours is None or theirs is None or bias.ndim != 1:
        return []
    for axis in {-1, 1 if len(a.shape) > 1 else 0}:
        if a.shape[axis] != bias.size:
            continue
        shape = [1] * len(a.shape)
        shape[axis] = bias.size
        found = fit(theirs - ours, project(np.broadcast_to(bias.reshape(shape), a.shape)))
        if (
            found is not None
            and found.residual < EXACT
            and close(found.weights[0], [-1.0, 1.0], 1e-4)
        ):
            verb = "does not add" if found.weights[0] < 0 else "adds twice"
            name = "missing bias" if found.weights[0] < 0 else "bias twice"
            return [
                finding(
                    name,
                    f"{item.record.name} {verb} its bias in the port.",
                    item,
                    1 - found.residual,
                    weight=found.weights[0],
                )
            ]
    return []


def _weight(evidence: Evidence, item: Divergence) -> list[Finding]:
    """An output by the transposed weight, where tensors are whole."""
    source, weight = _input(evidence, item), _held(evidence, item, "weight")
    x, w, b = evidence.a.full(source), evidence.a.full(weight), evidence.b.full(item.port)
    if x is None or w is None or b is None or w.ndim != 2 or w.shape[0] != w.shape[1]:  # noqa: PLR2004
        return []
    if x.shape[-1] != w.shape[0]:
        return []
    bias = evidence.a.full(_held(evidence, item, "bias"))
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


def _function(evidence: Evidence, item: Divergence) -> list[Finding]:
    """Another function, where tensors are whole."""
    x = evidence.a.full(_input(evidence, item))
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


def _eps(evidence: Evidence, item: Divergence) -> list[Finding]:
    """A normalization over the last dimension with another eps, where tensors are whole."""
    x = evidence.a.full(_input(evidence, item))
    a, b = evidence.a.full(item.reference), evidence.b.full(item.port)
    if x is None or a is None or b is None or "Norm" not in _type(evidence, item):
        return []
    variances = x.var(axis=-1, keepdims=True)
    held = [evidence.a.full(_held(evidence, item, name)) for name in ("weight", "bias")]
    weight = np.ones(1) if held[0] is None else held[0]
    bias = np.zeros(1) if held[1] is None else held[1]
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


def _border(evidence: Evidence, item: Divergence) -> list[Finding]:
    """A convolution that differs at the border alone, where tensors are whole."""
    a, b = evidence.a.full(item.reference), evidence.b.full(item.port)
    if a is None or b is None or a.ndim < 3 or "Conv" not in _type(evidence, item):  # noqa: PLR2004
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


def _order(item: Divergence) -> list[Finding]:
    """An output that has the same values in another order."""
    if not permuted(*contents(item)):
        return []
    return [
        finding(
            "values in another order",
            f"What {item.record.name} gives has the same values in another order.",
            item,
            0.9,
        )
    ]
