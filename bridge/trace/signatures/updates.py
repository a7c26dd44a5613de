"""Faults of updates: their size, their sign, momentum and decay."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bridge.trace.evidence import Evidence, Side
from bridge.trace.finding import Finding, finding
from bridge.trace.linear import Fit, close, fit, vector
from bridge.trace.outcome import Divergence
from bridge.trace.record import Record
from bridge.trace.signatures.options import changed
from bridge.trace.signs import Numbers

EXACT = 1e-4


@dataclass(frozen=True)
class Update:
    """What an update was made of on one side, as projections over all parameters."""

    parameters: Numbers
    gradients: Numbers
    change: Numbers
    old: Numbers | None
    new: Numbers | None

    @property
    def driver(self) -> Numbers:
        """What the parameters follow: the momentum buffer, or the gradient."""
        return self.gradients if self.new is None else self.new


def signatures(evidence: Evidence) -> Iterator[Finding]:
    """Look at updates whose gradients and state before are those of the reference.

    Spec: R35.4
    """
    if options_differ(evidence):
        return
    items = [item for item in evidence.of("step", "parameter") if item.reference and item.port]
    still = [item for item in items if _still(evidence, item)]
    if still:
        yield _frozen(evidence, still)
    at, records = updated(evidence, [item.record.name for item in still])
    a, b = (update_of(side, records) for side in (evidence.a, evidence.b))
    if at is None or a is None or b is None or adapts(evidence, records):
        return
    yield from _buffer(a, b, at) or size(evidence, a, b, at) or _shape(a, b, at)


def updated(evidence: Evidence, without: list[str]) -> tuple[Divergence | None, list[Record]]:
    """List the parameters that differ, or whose state does, as the first such step leaves them."""
    kinds = ("parameter", "optimizer state")
    roots = [item for kind in kinds for item in evidence.of("step", kind) if item.reference]
    roots = [item for item in roots if item.record.name not in without]
    if not roots:
        return None, []
    at = min(roots, key=lambda item: item.record.order)
    step, replica = at.record.step, at.record.replica
    names = {item.record.name for item in roots if item.record.step == step}
    held = evidence.a.of_step(step, "step", "parameter", replica)
    return at, [record for record in held if record.name in names]


def adapts(evidence: Evidence, records: list[Record]) -> bool:
    """Tell whether the optimizer divides by what it remembers of gradients."""
    return any(evidence.a.beside(r, "optimizer state", "exp_avg_sq") for r in records)


def options_differ(evidence: Evidence) -> bool:
    """Tell whether the configuration of the optimizers explains what differs."""
    return any(
        one.name.startswith("optimizer") and one.part != "type" for one, _ in changed(evidence)
    )


def update_of(side: Side, records: list[Record]) -> Update | None:
    """Join what the updates of some parameters were made of."""
    own = [side.like(record) for record in records]
    before = [side.before(record) for record in records]
    buffers = [side.beside(record, "optimizer state", "momentum_buffer") for record in records]
    held = [_held(side, b) for b in buffers]
    after = vector(*map(side.tensor, own))
    start = vector(*map(side.tensor, before))
    gradients = vector(*(side.gradient(record) for record in records))
    if after is None or start is None or gradients is None:
        return None
    old, new = (vector(*map(side.tensor, state)) for state in (held, buffers))
    return Update(start, gradients, after - start, old, new)


def _held(side: Side, own: Record | None) -> Record | None:
    """Return what a part of the state of this side was before its step."""
    earlier = [] if own is None else side.history(own)
    return earlier[-1] if earlier else None


def _still(evidence: Evidence, item: Divergence) -> bool:
    """Tell whether only the port left a parameter as it was."""
    before = evidence.b.before(item.record)
    tensors = [side.tensor for side in (before, item.port) if side is not None]
    return len({t.digest for t in tensors if t is not None}) == 1


def _frozen(evidence: Evidence, still: list[Divergence]) -> Finding:
    """Say that parameters are not updated."""
    first = still[0].record
    count = len(evidence.a.of_step(first.step, "step", "parameter", first.replica))
    if len(still) == count:
        return finding("no update", "The port leaves all parameters as they were.", still[0], 1.0)
    names = ", ".join(item.record.name for item in still[:4])
    return finding("frozen parameter", f"The port does not update {names}.", still[0], 1.0)


def _buffer(a: Update, b: Update, item: Divergence) -> list[Finding]:
    """Momentum buffers that follow another rule."""
    if a.new is None or b.new is None or np.array_equal(a.new, b.new):
        return []
    ours, theirs = _rule(a), _rule(b)
    if ours is None or theirs is None or max(ours.residual, theirs.residual) > EXACT:
        return []
    (share, new, decay), (other, fresh, less) = ours.weights, theirs.weights
    numbers = {"left": theirs.residual}
    sure = 1 - theirs.residual
    if not close(new, [fresh]):
        text = (
            f"the gradient comes in with weight {fresh:.4g}, not {new:.4g}; momentum is {other:.4g}"
        )
        return [
            finding(
                "momentum dampening",
                f"In the momentum buffer of the port {text}.",
                item,
                sure,
                dampening=1 - fresh / new,
                **numbers,
            )
        ]
    if abs(share - other) > EXACT:
        return [
            finding(
                "momentum coefficient",
                f"The momentum of the port is {other:.6g}, that of the reference {share:.6g}.",
                item,
                sure,
                **numbers,
            )
        ]
    if abs(decay - less) > EXACT * max(abs(decay), abs(less)):
        return [_decay(b, item, decay, less)]
    return []


def _rule(update: Update) -> Fit | None:
    """Write a new buffer as a sum of the old one, the gradient and the parameter."""
    if update.new is None:
        return None
    if update.old is not None:
        return fit(update.new, update.old, update.gradients, update.parameters)
    found = fit(update.new, update.gradients, update.parameters)
    return None if found is None else Fit((0.0, *found.weights), found.residual)


def _decay(b: Update, item: Divergence, decay: float, less: float) -> Finding:
    """Tell decay that is coupled elsewhere from one that is not there."""
    found = fit(b.change, b.driver, b.parameters)
    beside = 0.0 if found is None or found.residual > EXACT else found.weights[1] / found.weights[0]
    numbers = {"reference": decay, "port": less, "beside": beside}
    if abs(beside) > EXACT * abs(decay) and abs(less) < abs(decay):
        return finding(
            "decay coupled or decoupled",
            f"The reference adds {decay:.4g} times the weights to "
            f"the gradient; the port takes {beside:.4g} times the weights off beside the "
            "momentum.",
            item,
            0.98,
            **numbers,
        )
    return finding(
        "weight decay",
        f"The weight decay of the port is {less:.4g}, that of the reference {decay:.4g}.",
        item,
        0.95,
        **numbers,
    )


def size(evidence: Evidence, a: Update, b: Update, item: Divergence) -> list[Finding]:
    """Name updates that are a multiple of the reference's.

    Spec: R35.4
    """
    found = fit(b.change, a.change)
    gap = float(np.linalg.norm(b.change - a.change))
    if found is None or found.residual * float(np.linalg.norm(b.change)) > 0.01 * gap:
        return []
    return [_sized(found.weights[0], found.residual, evidence, item)]


def _sized(ratio: float, left: float, evidence: Evidence, item: Divergence) -> Finding:
    """Name a factor of the updates."""
    rate = float(evidence.a.option("lr") or 0.0)
    momentum = float(evidence.a.option("momentum") or 0.0)
    text = f"The updates of the port are {ratio:.6g} times those of the reference"
    numbers = {"ratio": ratio, "left": left}
    if close(ratio, [-1.0]):
        return finding(
            "sign of the update", f"{text}: the sign is wrong.", item, 1 - left, **numbers
        )
    if momentum and close(ratio, [1 + momentum, 1 / (1 + momentum)], 1e-6):
        return finding(
            "Nesterov momentum",
            f"{text}, one more than the momentum in the first step: one side looks ahead.",
            item,
            0.95,
            **numbers,
        )
    if rate and close(ratio, [rate], 1e-4):
        return finding(
            "learning rate twice",
            f"{text}, which is the learning rate: it is multiplied twice.",
            item,
            1 - left,
            **numbers,
        )
    if rate and close(ratio, [1 / rate], 1e-4):
        return finding(
            "learning rate missing",
            f"{text}, which is one by the learning rate.",
            item,
            1 - left,
            **numbers,
        )
    if close(ratio, [2.0], 1e-4):
        return finding(
            "update twice", f"{text}: as if the optimizer stepped twice.", item, 0.9, **numbers
        )
    return finding(
        "learning-rate ratio",
        f"{text}, at the same learning rate in the records.",
        item,
        0.95 * (1 - left),
        **numbers,
    )


def _shape(a: Update, b: Update, item: Divergence) -> list[Finding]:
    """Updates that look ahead, or decay otherwise."""
    if a.new is not None and b.new is not None:
        return _ahead(a, b, item)
    extra = fit(b.change - a.change, a.parameters)
    if extra is not None and extra.residual < EXACT:
        return [
            finding(
                "weight decay",
                f"The updates of the port differ by {extra.weights[0]:.4g} times "
                "the weights: another weight decay.",
                item,
                1 - extra.residual,
                weight=extra.weights[0],
            )
        ]
    return []


def _ahead(a: Update, b: Update, item: Divergence) -> list[Finding]:
    """Tell Nesterov's update from the plain one: it has the gradient in it as well."""
    plain = fit(a.change, a.driver)
    both = _lookahead(b)
    if plain is None or both is None:
        return []
    sides = (plain.residual < EXACT, both.residual < EXACT)
    swapped = fit(b.change, b.driver), _lookahead(a)
    if not all(sides) and swapped[0] and swapped[1]:
        sides = (swapped[0].residual < EXACT, swapped[1].residual < EXACT)
    if all(sides):
        return [
            finding(
                "Nesterov momentum",
                "One side updates by the momentum buffer, the other looks "
                "ahead, by gradient and buffer.",
                item,
                0.98,
            )
        ]
    return []


def _lookahead(side: Update) -> Fit | None:
    """Write an update as a sum of the buffer, the gradient and the decayed parameter."""
    if side.old is None:
        # The first buffer is the gradient itself, with its decay; nothing else is needed.
        return fit(side.change, side.driver)
    return fit(side.change, side.driver, side.gradients, side.parameters)
