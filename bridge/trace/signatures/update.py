"""What updates are made of, as projections."""

from dataclasses import dataclass

from bridge.trace.evidence import Evidence, Side
from bridge.trace.linear import vector
from bridge.trace.outcome import Divergence
from bridge.trace.record import Record
from bridge.trace.signatures.options import changed
from bridge.trace.signs import Numbers


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
