"""Faults of the buffers of batch normalization."""

import math
from collections.abc import Iterator

from bridge.trace.evidence import Evidence
from bridge.trace.finding import Finding, finding
from bridge.trace.linear import close, fit, vector
from bridge.trace.outcome import Divergence
from bridge.trace.signatures.setup import contents

EXACT = 1e-5
CONVENTIONS = tuple((1 - m) / m for m in (0.1, 0.01, 0.05, 0.001, 0.003, 0.03, 0.2, 0.3))


def signatures(evidence: Evidence) -> Iterator[Finding]:
    """Look at running means and variances whose inputs are those of the reference.

    Spec: R35.4
    """
    for item in evidence.of("step", "buffer"):
        if item.record.name.rpartition(".")[2] in {"running_mean", "running_var"}:
            yield from _momentum(evidence, item) or _variance(evidence, item)


def _momentum(evidence: Evidence, item: Divergence) -> list[Finding]:
    """A buffer that moved in the same direction, by another share."""
    a, b = contents(item)
    before = evidence.a.before(item.record)
    old, ours, theirs = vector(None if before is None else before.tensor), vector(a), vector(b)
    if old is None or ours is None or theirs is None:
        return []
    name = item.record.name
    found = fit(theirs - old, ours - old)
    if found is None:
        still = b.digest == (before.tensor.digest if before and before.tensor else None)
        text = f"{name} does not move in the port, as in evaluation mode."
        return [finding("layer in another mode", text, item, 0.9)] if still else []
    if found.residual > EXACT:
        return []
    ratio = found.weights[0]
    text = f"{name} moves {ratio:.6g} times as far in the port"
    if close(ratio, [*CONVENTIONS, *(1 / other for other in CONVENTIONS)], 1e-4):
        share = ratio / (1 + ratio)
        return [
            finding(
                "batch-norm momentum convention",
                f"{text}: {share:.4g} instead of {1 - share:.4g}; "
                "one side takes the momentum for the share of the new value, the other for that "
                "of the old one.",
                item,
                1 - found.residual,
                ratio=ratio,
            )
        ]
    return [finding("batch-norm momentum", f"{text}: another momentum.", item, 0.9, ratio=ratio)]


def _variance(evidence: Evidence, item: Divergence) -> list[Finding]:
    """A variance that is divided by ``n`` where the reference divides by ``n - 1``."""
    a, b = contents(item)
    record = item.record
    before = evidence.a.before(record)
    layer = record.name.rpartition(".")[0]
    inputs = [
        r
        for r in evidence.a.of_step(record.step, "forward", "input", record.replica)
        if r.name == layer and r.tensor is not None
    ]
    old, ours, theirs = vector(None if before is None else before.tensor), vector(a), vector(b)
    if not inputs or inputs[0].tensor is None or old is None or ours is None or theirs is None:
        return []
    shape = inputs[0].tensor.shape
    count = math.prod(shape) / shape[1]
    found = fit(theirs - ours, ours, old)
    if found is None or found.residual > EXACT:
        return []
    for size, which in ((count, "port"), (1 - count, "reference")):
        if close(found.weights[0], [-1 / size], 1e-4):
            return [
                finding(
                    "biased variance in batch norm",
                    f"{record.name} of the {which} is of the "
                    f"variance divided by {count:g} samples, not by one less.",
                    item,
                    1 - found.residual,
                    weight=found.weights[0],
                )
            ]
    return []
