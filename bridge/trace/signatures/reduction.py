"""Faults of the reduction over replicas, and of making them equal again."""

from collections.abc import Iterator

import numpy as np

from bridge.trace.evidence import Evidence, Side
from bridge.trace.finding import Finding, finding
from bridge.trace.linear import Fit, close, fit, vector
from bridge.trace.record import Record
from bridge.trace.signatures.gradients import scaling

EXACT = 1e-3


def signatures(evidence: Evidence) -> Iterator[Finding]:
    """Look at what comes together from the replicas.

    Spec: R35.4
    """
    if evidence.of("reduce", "gradient"):
        yield from _weights(evidence)
    yield from _resync(evidence)


def _weights(evidence: Evidence) -> Iterator[Finding]:
    """Write the reduced gradients as a sum over the replicas, and compare the weights."""
    item = evidence.of("reduce", "gradient")[0]
    step = item.record.step
    a, b = _parts(evidence.a, step), _parts(evidence.b, step)
    if a is None or b is None or max(a.residual, b.residual) > EXACT:
        return
    left, ours, theirs = b.residual, np.array(a.weights), np.array(b.weights)
    texts = [", ".join(f"{w:.4g}" for w in side) for side in (ours, theirs)]
    both = f"{texts[1]} in the port and {texts[0]} in the reference"
    lost = [k for k, w in enumerate(theirs) if abs(w) < EXACT * abs(ours[k])]
    if lost:
        yield finding(
            "dropped shard",
            f"The gradients of replica {lost[0]} are not in the reduced ones: "
            f"the replicas have weights {both}.",
            item,
            1 - left,
        )
        return
    ratios = theirs / ours
    if close(float(ratios.max()), [float(ratios.min())]):
        yield scaling("gradients", float(ratios.mean()), evidence, item, left)
        return
    samples = _samples(evidence.a, step)
    unweighted = theirs * samples if close(float(ours.max()), [float(ours.min())]) else theirs
    if close(float(unweighted.max()), [float(unweighted.min())]):
        yield finding(
            "mean of means",
            f"Each shard counts the same in the port, though they are uneven: "
            f"the gradients of the replicas have weights {both}.",
            item,
            1 - left,
        )


def _parts(side: Side, step: int) -> Fit | None:
    """Fit the reduced gradients as a sum of those of the replicas."""
    reduced = side.of_step(step, "reduce", "gradient")
    own = side.of_step(step, "backward", "gradient", None)
    replicas = sorted({record.replica for record in own})
    parts = [vector(*(r.tensor for r in own if r.replica == k)) for k in replicas]
    known = [part for part in parts if part is not None]
    target = vector(*(r.tensor for r in reduced))
    if target is None or not known or len(known) < len(parts):
        return None
    return fit(target, *known) if all(k.shape == target.shape for k in known) else None


def _samples(side: Side, step: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Count the samples of each replica."""
    inputs = side.of_step(step, "scatter", "input", None)
    return np.array(
        [r.tensor.shape[0] for r in inputs if r.name == "inputs" and r.part == "0" and r.tensor],
        dtype=np.float64,
    )


def _resync(evidence: Evidence) -> Iterator[Finding]:
    """Replicas that are not made equal after the update."""
    for kind, name in (("parameter", "replica not resynced"), ("buffer", "buffer not resynced")):
        found = [item for item in evidence.of("resync", kind) if _own(evidence, item.port)]
        if found:
            item = found[0]
            yield finding(
                name,
                f"After the step {kind} {item.record.name} of replica "
                f"{item.record.replica} is not that of replica 0 in the port.",
                item,
                1.0,
            )
            return


def _own(evidence: Evidence, port: Record | None) -> bool:
    """Tell whether a replica of the port differs from replica 0."""
    if port is None or port.tensor is None:
        return False
    first = evidence.b.of_step(port.step, "step", port.kind)
    twin = next((r for r in first if r.name == port.name), None)
    return twin is not None and twin.tensor is not None and twin.tensor.digest != port.tensor.digest
