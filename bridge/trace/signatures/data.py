"""Faults of batches: their order, their labels, how they are prepared."""

import math
from collections.abc import Iterator

import numpy as np

from bridge.trace.evidence import Evidence
from bridge.trace.finding import Finding, finding
from bridge.trace.linear import fit, project, vector
from bridge.trace.outcome import Divergence
from bridge.trace.signatures.setup import contents, permuted
from bridge.trace.signs import Numbers

EXACT = 1e-5


def signatures(evidence: Evidence) -> Iterator[Finding]:
    """Look at what a step takes.

    Spec: R35.4
    """
    for fault, name in (("shape", "other batch size"), ("dtype", "other dtype")):
        found = [item for item in _inputs(evidence) if item.fault == fault]
        if found:
            a, b = contents(found[0])
            both = f"{a.dtype} {a.shape} in the reference, {b.dtype} {b.shape} in the port"
            yield finding(name, f"The batch is {both}.", found[0], 1.0)
    found = [item for item in _inputs(evidence) if item.fault == "value"]
    inputs = [item for item in found if item.record.name == "inputs"]
    targets = [item for item in found if item.record.name == "targets"]
    if inputs:
        yield from _order(evidence, inputs[0], alone=not targets)
    elif targets:
        yield from _labels(evidence, targets[0])


def _inputs(evidence: Evidence) -> list[Divergence]:
    """List the parts of batches that differ."""
    return [item for item in evidence.roots if item.record.phase == "scatter"]


def _order(evidence: Evidence, item: Divergence, *, alone: bool) -> Iterator[Finding]:
    """Tell the inputs of another step, and the same ones in another order."""
    a, b = contents(item)
    step = item.record.step
    twins = [
        record.step
        for record in evidence.a.trace.records
        if record.phase == "scatter"
        and record.name == "inputs"
        and record.tensor is not None
        and record.step != step
        and record.tensor.digest == b.digest
    ]
    if twins:
        yield finding(
            "batch order",
            f"Step {step} of the port takes the batch of step {twins[0]} of the reference.",
            item,
            1.0,
            step=step,
            batch=twins[0],
        )
    elif permuted(a, b):
        name = "wrong label order" if alone else "sample order"
        also = (
            "but the labels are in the order of the reference" if alone else "and so do the labels"
        )
        yield finding(name, f"The samples of the batch come in another order, {also}.", item, 0.9)
    else:
        yield from _prepared(item)


def _prepared(item: Divergence) -> Iterator[Finding]:
    """Tell inputs that are a multiple of the reference's, or have a constant added."""
    a, b = contents(item)
    x, y = vector(a), vector(b)
    if x is None or y is None:
        return
    ones = _ones(math.prod(a.shape))
    scaled = fit(y, x)
    if scaled is not None and scaled.residual < EXACT:
        ratio = scaled.weights[0]
        yield finding(
            "inputs scaled",
            f"The inputs of the port are {ratio:.6g} times those of the reference.",
            item,
            1 - scaled.residual,
            ratio=ratio,
        )
        return
    both = fit(y, x, ones)
    if both is not None and both.residual < EXACT:
        ratio, shift = both.weights
        yield finding(
            "inputs shifted",
            f"The inputs of the port are {ratio:.6g} times those of the "
            f"reference, plus {shift:.6g}.",
            item,
            1 - both.residual,
            ratio=ratio,
            shift=shift,
        )


def _labels(evidence: Evidence, item: Divergence) -> Iterator[Finding]:
    """Tell labels in another order, and labels that count otherwise."""
    one, other = evidence.a.full(item.reference), evidence.b.full(item.port)
    a, b = contents(item)
    if one is not None and other is not None and one.shape == other.shape and one.ndim == 1:
        shift = other - one
        classes = int(max(one.max(), other.max())) + 1
        if len(set((shift % classes).tolist())) == 1:
            by = shift[0] % classes
            yield finding(
                "labels shifted",
                f"The labels of the port are those of the reference plus {by:g}, modulo {classes}.",
                item,
                1.0,
                shift=by,
            )
            return
        if sorted(one.tolist()) == sorted(other.tolist()):
            yield finding(
                "wrong label order",
                "The labels come in another order; the inputs are those of the reference.",
                item,
                1.0,
            )
    elif permuted(a, b):
        yield finding(
            "wrong label order",
            "The labels seem to come in another order; the inputs are those of the reference.",
            item,
            0.8,
        )


def _ones(size: int) -> Numbers:
    """Project a tensor of ones."""
    return project(np.ones(size))
