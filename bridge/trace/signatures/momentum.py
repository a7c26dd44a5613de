"""Faults of momentum buffers."""

import numpy as np

from bridge.trace.finding import Finding, finding
from bridge.trace.linear import Fit, close, fit
from bridge.trace.outcome import Divergence
from bridge.trace.signatures.update import Update

EXACT = 1e-4


def buffer(a: Update, b: Update, item: Divergence) -> list[Finding]:
    """Name momentum buffers that follow another rule.

    Spec: R35.4
    """
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
