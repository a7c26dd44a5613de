"""Faults of the loss."""

from collections.abc import Iterator

from bridge.trace.evidence import Evidence
from bridge.trace.finding import Finding, finding
from bridge.trace.linear import close
from bridge.trace.outcome import Divergence
from bridge.trace.signatures.formulas import LOSSES, matching
from bridge.trace.signatures.gradients import batch_size


def signatures(evidence: Evidence) -> Iterator[Finding]:
    """Look at losses whose outputs and targets are those of the reference.

    Spec: R35.4
    """
    for item in evidence.of("loss", "loss")[:1]:
        yield from _formula(evidence, item) or _scaled(evidence, item)


def _scaled(evidence: Evidence, item: Divergence) -> list[Finding]:
    """A loss that is a multiple of the reference's."""
    a, b = evidence.a.full(item.reference), evidence.b.full(item.port)
    if a is None or b is None or a.size != 1 or b.size != 1 or not float(a.sum()):
        return []
    ratio = float(b.sum() / a.sum())
    batch = batch_size(evidence, item.record.step)
    text = f"The loss of the port is {ratio:.6g} times that of the reference"
    if close(ratio, [-1.0], 1e-9):
        return [finding("sign of the loss", f"{text}: the sign is wrong.", item, 1.0, ratio=ratio)]
    if batch > 1 and close(ratio, [batch], 1e-5):
        return [
            finding(
                "loss summed, not averaged",
                f"{text}, the number of samples: summed, where the reference averages.",
                item,
                1.0,
                ratio=ratio,
            )
        ]
    if batch > 1 and close(ratio, [1 / batch], 1e-5):
        return [
            finding(
                "loss averaged, not summed",
                f"{text}: averaged over {batch} samples, where the reference sums.",
                item,
                1.0,
                ratio=ratio,
            )
        ]
    return []


def _formula(evidence: Evidence, item: Divergence) -> list[Finding]:
    """A loss that is another function, where outputs and targets are whole."""
    step, replica = item.record.step, item.record.replica
    outputs = [r for r in evidence.a.of_step(step, "forward", "activation", replica) if not r.name]
    inputs = evidence.a.of_step(step, "scatter", "input", replica)
    targets = [r for r in inputs if r.name == "targets"]
    if not outputs or not targets:
        return []
    x, y = evidence.a.full(outputs[-1]), evidence.a.full(targets[0])
    a, b = evidence.a.full(item.reference), evidence.b.full(item.port)
    if x is None or y is None or a is None or b is None:
        return []
    ours, theirs = (matching(LOSSES, (x, y), wanted) for wanted in (a, b))
    if ours is None or theirs is None or ours == theirs:
        return []
    if theirs == f"sum of {ours}":
        return []
    return [finding("wrong loss", f"The reference computes {ours}, the port {theirs}.", item, 1.0)]
