"""Faults inside of a layer: its output is not what its inputs and weights give."""

import numpy as np

from bridge.trace.evidence import Evidence
from bridge.trace.finding import Finding, finding
from bridge.trace.linear import close, fit, project, vector
from bridge.trace.outcome import Divergence
from bridge.trace.signatures.between import scaled
from bridge.trace.signatures.layer import held, input_of, type_of
from bridge.trace.signatures.setup import contents, permuted
from bridge.trace.signatures.whole import border, eps, function, weight

EXACT = 1e-5


def signatures(evidence: Evidence, item: Divergence) -> list[Finding]:
    """Explain the output of a layer by its inputs, its weights and the reference's output.

    Spec: R35.4
    """
    return (
        _effect(evidence, item)
        or _bias(evidence, item)
        or scaled(evidence, item)
        or weight(evidence, item)
        or function(evidence, item)
        or eps(evidence, item)
        or border(evidence, item)
        or _order(item)
    )


def _effect(evidence: Evidence, item: Divergence) -> list[Finding]:
    """A layer that does nothing on one side, above all dropout."""
    source = input_of(evidence, item)
    if source is None or source.tensor is None:
        return []
    a, b = contents(item)
    name = item.record.name
    drops = "Dropout" in type_of(evidence, item)
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
    bias = evidence.a.full(held(evidence, item, "bias"))
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
