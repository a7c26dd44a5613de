"""Faults of the forward: layers that compute something else from the same inputs."""

from collections.abc import Iterator

import numpy as np

from bridge.trace.evidence import Evidence
from bridge.trace.finding import Finding, finding
from bridge.trace.outcome import Divergence
from bridge.trace.record import Contents
from bridge.trace.signatures import between, inside
from bridge.trace.signatures.setup import contents


def signatures(evidence: Evidence) -> Iterator[Finding]:
    """Look at the calls of layers.

    Spec: R35.4
    """
    roots = [item for item in evidence.roots if item.record.phase == "forward"]
    steps = {item.record.step for item in roots}
    calls = list(
        _calls(
            [i for i in evidence.faults if i.record.phase == "forward" and i.record.step in steps]
        )
    )
    if calls:
        yield from calls
        return
    for item in roots:
        if item.fault == "shape":
            a, b = contents(item)
            shapes = f"{a.shape} in the reference, {b.shape} in the port"
            text = f"{item.record.kind} of {item.record.name} is {shapes}"
            yield finding(
                "other shape",
                f"{text}: another stride, padding, kernel, or order of dimensions.",
                item,
                0.9,
            )
        elif item.fault == "dtype":
            a, b = contents(item)
            yield finding(
                "other dtype",
                f"{item.record.name} gives {a.dtype} in the reference, {b.dtype} in the port.",
                item,
                1.0,
            )
        elif item.fault == "value":
            yield from _value(evidence, item)


def _calls(roots: list[Divergence]) -> Iterator[Finding]:
    """Calls that one side does not have, or has in another order."""
    for fault, name, text in (
        ("missing", "missing layer", "The port does not call {}."),
        ("extra", "extra layer", "Only the port makes call {} of {}."),
        ("reordered", "layer order", "The port calls {} in another order."),
    ):
        found = [item for item in roots if item.fault == fault]
        if not found:
            continue
        record = found[0].record
        words = [record.name or "the model"]
        yield finding(
            name, text.format(*([record.call] if fault == "extra" else []), *words), found[0], 1.0
        )
        return


def _value(evidence: Evidence, item: Divergence) -> Iterator[Finding]:
    """Explain a tensor by the tensors before it."""
    a, b = contents(item)
    if _single(b) and not _single(a):
        yield finding(
            "float32 in a float64 model",
            f"{item.record.name or 'The model'} gives numbers of "
            "float32 in the port: a cast or a constant of float32.",
            item,
            0.95,
        )
    elif item.record.kind == "input":
        yield from between.signatures(evidence, item)
    else:
        yield from inside.signatures(evidence, item)


def _single(tensor: Contents) -> bool:
    """Tell whether the ends of the range of a float64 tensor are float32 numbers."""
    ends = {tensor.summary.minimum, tensor.summary.maximum} - {0.0, 1.0, -1.0}
    return (
        tensor.dtype == "float64"
        and bool(ends)
        and all(float(np.float32(end)) == end and end * 1024 % 1 for end in ends)
    )
