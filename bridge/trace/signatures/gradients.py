"""Faults of gradients after the backward, the reduction and the clipping."""

from collections.abc import Iterator

import numpy as np

from bridge.trace.evidence import Evidence
from bridge.trace.finding import Finding, finding
from bridge.trace.linear import Fit, close, fit, vector
from bridge.trace.outcome import Divergence
from bridge.trace.record import Contents, Record
from bridge.trace.signatures.setup import contents

EXACT = 1e-4


def signatures(evidence: Evidence) -> Iterator[Finding]:
    """Look at the gradients whose losses are those of the reference.

    Spec: R35.4
    """
    yield from _none(evidence)
    own = [item for item in evidence.of("backward", "gradient") if numbers(item)]
    if own:
        found = list(_carried(evidence, own)) or list(_shares(own)) or list(_scaled(evidence, own))
        yield from found


def _none(evidence: Evidence) -> Iterator[Finding]:
    """A gradient that is None, or zero, on one side."""
    found = [
        item
        for item in evidence.of("backward", "gradient")
        if item.reference and item.port and _empty(item.port) and not _empty(item.reference)
    ]
    if found:
        names = ", ".join(item.record.name for item in found[:4])
        yield finding(
            "no gradient",
            f"{names}: the port has no gradient, as if something were "
            "detached or not required to have one.",
            found[0],
            1.0,
        )


def _empty(record: Record) -> bool:
    """Tell whether there is no gradient."""
    return record.tensor is None or record.tensor.summary.norm == 0


def numbers(item: Divergence) -> bool:
    """Tell whether both sides have a gradient that is not zero.

    Spec: R35.4
    """
    return all(
        s is not None and s.tensor is not None and s.tensor.summary.norm > 0
        for s in (item.reference, item.port)
    )


def _joined(items: list[Divergence], side: int) -> Contents | None:
    """Return the tensor of a side of the first item."""
    return contents(items[0])[side]


def both(items: list[Divergence]) -> tuple[list[Contents], list[Contents]]:
    """Return the tensors of both sides."""
    pairs = [contents(item) for item in items]
    return [a for a, _ in pairs], [b for _, b in pairs]


def _earlier(evidence: Evidence, items: list[Divergence], *, port: bool) -> list[Contents | None]:
    """Return the gradients of the step before."""
    side = evidence.b if port else evidence.a
    found: list[Contents | None] = []
    for item in items:
        one = item.port if port else item.reference
        step = item.record.step - 1
        before = side.of_step(step, "backward", "gradient", item.record.replica)
        found.append(next((r.tensor for r in before if one and r.name == one.name), None))
    return found


def _carried(evidence: Evidence, items: list[Divergence]) -> Iterator[Finding]:
    """Gradients that are those of the step before, or were added to them."""
    a, b = both(items)
    ours, theirs = vector(*a), vector(*b)
    old, before = (vector(*_earlier(evidence, items, port=port)) for port in (True, False))
    if ours is None or theirs is None or old is None or before is None:
        return
    gap = float(np.linalg.norm(theirs - ours))
    for name, wanted, text in (
        ("gradients never cleared", ours + old, "plus its own of the step before"),
        ("stale gradients", before, "of the step before"),
    ):
        left = float(np.linalg.norm(theirs - wanted)) / gap
        if left < EXACT:
            yield finding(
                name,
                f"The gradients of the port are those of the reference {text}; "
                f"{left:.1e} of the difference is left.",
                items[0],
                1 - left,
                left=left,
            )
            return


def _shares(items: list[Divergence]) -> Iterator[Finding]:
    """Gradients of the replicas that have other weights: mean of means."""
    replicas = sorted({item.record.replica for item in items})
    if len(replicas) < 2:  # noqa: PLR2004 - there is nothing to share
        return
    ratios = [ratio_of([i for i in items if i.record.replica == r]) for r in replicas]
    exact = [r.weights[0] for r in ratios if r is not None and r.residual < EXACT]
    if len(exact) == len(replicas) and not close(exact[0], exact[1:]):
        # The weights of a mean of means are 1 / K where those of the reference are n / N.
        wanted = sum(1 / (len(exact) * ratio) for ratio in exact)
        if close(wanted, [1.0]):
            yield _means(items[0], exact)


def _means(item: Divergence, ratios: list[float]) -> Finding:
    """Say that each replica counts the same."""
    shares = ", ".join(f"{1 / (len(ratios) * ratio):.4g}" for ratio in ratios)
    return finding(
        "mean of means",
        f"Each of {len(ratios)} shards counts the same in the port; in the "
        f"reference they count {shares}.",
        item,
        0.95,
    )


def ratio_of(items: list[Divergence]) -> Fit | None:
    """Fit the gradients of the port as a multiple of those of the reference."""
    a, b = both(items)
    ours, theirs = vector(*a), vector(*b)
    return None if ours is None or theirs is None else fit(theirs, ours)


def _scaled(evidence: Evidence, items: list[Divergence]) -> Iterator[Finding]:
    """Gradients that are a multiple of those of the reference."""
    found = ratio_of(items)
    if found is None or found.residual > EXACT:
        return
    ratio = found.weights[0]
    yield scaling("gradients", ratio, evidence, items[0], found.residual)


def scaling(
    what: str, ratio: float, evidence: Evidence, item: Divergence, residual: float
) -> Finding:
    """Name a factor by the batch size, the replica count, or its sign.

    Spec: R35.4
    """
    numbers = {"ratio": ratio, "left": residual}
    text = f"The {what} of the port are {ratio:.6g} times those of the reference"
    batch = batch_size(evidence, item.record.step)
    replicas = int(evidence.a.trace.about.get("replicas", 1))
    if close(ratio, [-1.0]):
        return finding(
            f"sign of the {what}", f"{text}: the sign is wrong.", item, 1 - residual, **numbers
        )
    if replicas > 1 and close(ratio, [replicas, 1 / replicas]):
        return finding(
            f"{what} scaled by the replica count",
            f"{text}: there are {replicas} replicas; a sum instead of a mean, or the reverse.",
            item,
            1 - residual,
            **numbers,
        )
    if batch > 1 and close(ratio, [batch, 1 / batch]):
        return finding(
            f"{what} scaled by the batch size",
            f"{text}: the batch has {batch} samples.",
            item,
            1 - residual,
            **numbers,
        )
    return finding(f"{what} scaled", f"{text}.", item, 0.8 * (1 - residual), **numbers)


def batch_size(evidence: Evidence, step: int) -> int:
    """Return how many samples a step has, over all replicas."""
    shapes = [
        r.tensor.shape
        for r in evidence.a.of_step(step, "scatter", "input", None)
        if r.name == "inputs" and r.part == "0" and r.tensor is not None and r.tensor.shape
    ]
    return sum(shape[0] for shape in shapes)
