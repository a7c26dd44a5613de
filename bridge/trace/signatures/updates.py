"""Faults of updates: their size, their sign, momentum and decay."""

from collections.abc import Iterator

from bridge.trace.evidence import Evidence
from bridge.trace.finding import Finding, finding
from bridge.trace.linear import Fit, fit
from bridge.trace.outcome import Divergence
from bridge.trace.signatures.momentum import buffer
from bridge.trace.signatures.sizes import size
from bridge.trace.signatures.update import Update, adapts, options_differ, update_of, updated

EXACT = 1e-4


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
    yield from buffer(a, b, at) or size(evidence, a, b, at) or _shape(a, b, at)


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
