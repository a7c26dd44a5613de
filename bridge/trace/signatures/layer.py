"""What belongs to the call of a layer."""

from bridge.trace.evidence import Evidence
from bridge.trace.outcome import Divergence
from bridge.trace.record import Record


def input_of(evidence: Evidence, item: Divergence) -> Record | None:
    """Return what went into the call.

    Spec: R35.5
    """
    own = item.record
    found = evidence.a.of_step(own.step, "forward", "input", own.replica)
    return next((r for r in found if (r.name, r.call) == (own.name, own.call)), None)


def type_of(evidence: Evidence, item: Divergence) -> str:
    """Return the type of the layer.

    Spec: R35.5
    """
    configured = evidence.a.of_step(0, "init", "configuration")
    return next(
        (str(r.value) for r in configured if (r.name, r.part) == (item.record.name, "type")), ""
    )


def held(evidence: Evidence, item: Divergence, name: str) -> Record | None:
    """Return a parameter of the layer as the step began.

    Spec: R35.5
    """
    full = f"{item.record.name}.{name}" if item.record.name else name
    step = item.record.step
    phase, at = ("step", step - 1) if step else ("init", 0)
    found = evidence.a.of_step(at, phase, "parameter", item.record.replica)
    return next((r for r in found if r.name == full), None)
