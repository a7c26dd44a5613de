"""Faults between layers: what goes into a layer is not what came out of those before."""

import math

import numpy as np

from bridge.trace.evidence import Evidence
from bridge.trace.finding import Finding, finding
from bridge.trace.linear import close, fit, vector
from bridge.trace.outcome import Divergence
from bridge.trace.record import Record
from bridge.trace.signatures.formulas import ACTIVATIONS, matching
from bridge.trace.signatures.setup import contents, permuted

EXACT = 1e-5


def signatures(evidence: Evidence, item: Divergence) -> list[Finding]:
    """Explain the input of a layer by what was there before it.

    Spec: R35.4
    """
    before = _before(evidence, item)
    return (
        scaled(evidence, item)
        or _residual(item, before)
        or _order(item)
        or _function(evidence, item, before)
        or _untouched(item, before)
    )


def scaled(evidence: Evidence, item: Divergence) -> list[Finding]:
    """A tensor that is a multiple of the reference's."""
    a, b = contents(item)
    ours, theirs = vector(a), vector(b)
    found = None if ours is None or theirs is None else fit(theirs, ours)
    if found is None or found.residual > EXACT * abs(found.weights[0] - 1):
        return []
    ratio = found.weights[0]
    text = f"The {item.record.kind} of {item.record.name} is {ratio:.6g} times as large in the port"
    sure = 1 - found.residual
    if close(ratio, [-1.0]):
        return [finding("sign of a tensor", f"{text}: the sign is wrong.", item, sure, ratio=ratio)]
    sizes = {
        n
        for r in evidence.a.of_step(item.record.step, "forward", item.record.kind, None)
        if r.tensor
        for n in r.tensor.shape
        if n > 1
    }
    for size in sorted(sizes):
        if close(ratio, [math.sqrt(size), 1 / math.sqrt(size)], 1e-5):
            return [
                finding(
                    "missing scale",
                    f"{text}, which is the root of {size}, a width of the model, or "
                    "one by it: a scale is missing or extra.",
                    item,
                    sure,
                    ratio=ratio,
                )
            ]
    return [finding("other scale", f"{text}.", item, 0.9 * sure, ratio=ratio)]


def _before(evidence: Evidence, item: Divergence) -> list[Record]:
    """List what layers gave and took before, the last first."""
    own = item.record
    kinds = ("activation", "input")
    found = [
        r for kind in kinds for r in evidence.a.of_step(own.step, "forward", kind, own.replica)
    ]
    return sorted((r for r in found if r.order < own.order), key=lambda r: -r.order)


def _residual(item: Divergence, before: list[Record]) -> list[Finding]:
    """A tensor that lacks a summand, or has one more."""
    a, b = contents(item)
    ours, theirs = vector(a), vector(b)
    if ours is None or theirs is None:
        return []
    for record in before:
        other = record.tensor
        known = vector(other) if other is not None and other.shape == a.shape else None
        found = None if known is None else fit(theirs - ours, known)
        if found is None or found.residual > EXACT or not close(abs(found.weights[0]), [1.0], 1e-4):
            continue
        lacks = found.weights[0] < 0
        name, verb = (
            ("missing residual", "lacks") if lacks else ("extra residual", "has, in addition,")
        )
        return [
            finding(
                name,
                f"What goes into {item.record.name} {verb} the {record.kind} of "
                f"{record.name or 'the model'} in the port.",
                item,
                1 - found.residual,
                weight=found.weights[0],
            )
        ]
    return []


def _order(item: Divergence) -> list[Finding]:
    """A tensor that has the same values in another order."""
    if not permuted(*contents(item)):
        return []
    return [
        finding(
            "values in another order",
            f"What goes into {item.record.name} has the same values in "
            "another order: transposed, permuted or reshaped.",
            item,
            0.9,
        )
    ]


def _function(evidence: Evidence, item: Divergence, before: list[Record]) -> list[Finding]:
    """Another function of what came before, where tensors are whole."""
    a, b = evidence.a.full(item.reference), evidence.b.full(item.port)
    if a is None or b is None:
        return []
    for record in before:
        x = evidence.a.full(record)
        if x is None or x.shape != a.shape or np.array_equal(x, a):
            continue
        ours, theirs = (matching(ACTIVATIONS, (x,), wanted) for wanted in (a, b))
        if ours is not None and theirs is not None and ours != theirs:
            text = f"Before {item.record.name} the reference computes {ours}, the port {theirs}"
            return [
                finding(
                    "wrong activation", f"{text}, of the {record.kind} of {record.name}.", item, 1.0
                )
            ]
    return []


def _untouched(item: Divergence, before: list[Record]) -> list[Finding]:
    """A tensor that the port hands on as it is."""
    _, b = contents(item)
    for record in before:
        if record.tensor is not None and record.tensor.digest == b.digest:
            text = (
                f"The port hands the {record.kind} of {record.name} to {item.record.name} as it is"
            )
            if record.kind == "input":
                return [finding("missing layer", f"{text}, past {record.name}.", item, 0.95)]
            return [
                finding(
                    "missing operation",
                    f"{text}; in the reference there is something between.",
                    item,
                    0.9,
                )
            ]
    return []
