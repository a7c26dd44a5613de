"""Faults that are there before the first step: parameters, initial values, options."""

import math
from collections.abc import Iterator

import numpy as np

from bridge.trace.evidence import Evidence
from bridge.trace.finding import Finding, finding
from bridge.trace.outcome import Divergence
from bridge.trace.record import Contents

HELD = ("parameter", "buffer")
SPREAD = 0.1


def signatures(evidence: Evidence) -> Iterator[Finding]:
    """Look at what a training begins with.

    Spec: R35.4
    """
    roots = [item for item in evidence.roots if item.record.phase == "init"]
    held = [item for item in roots if item.record.kind in HELD]
    yield from _structure(held)
    yield from _dtypes(held)
    yield from _values(evidence, [item for item in held if item.fault == "value"])


def _structure(held: list[Divergence]) -> Iterator[Finding]:
    """Parameters that are missing, extra, in another order, or of another shape."""
    missing = [item for item in held if item.fault == "missing"]
    extra = [item for item in held if item.fault == "extra"]
    for item in missing:
        name = item.record.name
        twin = next((other for other in extra if _alike(item, other)), None)
        if twin is not None:
            extra.remove(twin)
            yield finding(
                "other name",
                f"{name} of the reference seems to be {twin.record.name} in "
                f"the port: map it with --name {name}={twin.record.name}.",
                item,
                0.5,
            )
        elif name.endswith("bias"):
            yield finding("missing bias", f"The port has no {name}.", item, 1.0)
        else:
            yield finding("missing parameter", f"The port has no {name}.", item, 1.0)
    for item in extra:
        yield finding("extra parameter", f"Only the port has {item.record.name}.", item, 1.0)
    moved = [item for item in held if item.fault == "reordered"]
    if moved:
        names = ", ".join(item.record.name for item in moved)
        yield finding(
            "parameter order", f"The port registers {names} in another order.", moved[0], 1.0
        )
    for item in held:
        if item.fault == "shape":
            yield _shape(item)


def _shape(item: Divergence) -> Finding:
    """Say how a shape differs."""
    a, b = contents(item)
    shapes = f"{a.shape} in the reference and {b.shape} in the port"
    if a.shape == b.shape[::-1]:
        return finding(
            "transposed weight", f"{item.record.name} is transposed: {shapes}.", item, 1.0
        )
    return finding("other shape", f"{item.record.name} is {shapes}.", item, 1.0)


def _dtypes(held: list[Divergence]) -> Iterator[Finding]:
    """Another dtype."""
    found = [item for item in held if item.fault == "dtype"]
    if found:
        a, b = contents(found[0])
        yield finding(
            "other dtype",
            f"{len(found)} tensors are {a.dtype} in the reference and {b.dtype} in the port.",
            found[0],
            1.0,
        )


def _values(evidence: Evidence, held: list[Divergence]) -> Iterator[Finding]:
    """Initial values: transposed, drawn from another seed, drawn otherwise."""
    rest = []
    for item in held:
        a, b = contents(item)
        if len(a.shape) > 1 and permuted(a, b):
            yield finding(
                "transposed weight",
                f"{item.record.name} has the same values in another "
                "order, as if it were transposed.",
                item,
                _transposed(evidence, item),
            )
        else:
            rest.append(item)
    spread = [item for item in rest if _drawn_alike(*contents(item))]
    odd = [item for item in rest if item not in spread]
    if odd:
        a, b = contents(odd[0])
        ratio = b.summary.norm / a.summary.norm if a.summary.norm else math.inf
        names = ", ".join(item.record.name for item in odd[:4])
        yield finding(
            "different initialization",
            f"{names}: initialized otherwise; the norm is {ratio:.4g} times that of the reference.",
            odd[0],
            0.9,
            ratio=ratio,
        )
    elif spread:
        yield finding(
            "different seed",
            f"{len(spread)} tensors have other values of the same size: "
            "another seed, or another order of draws.",
            spread[0],
            0.9,
        )


def permuted(a: Contents, b: Contents) -> bool:
    """Tell whether two tensors seem to have the same values in another order."""
    one, other = a.summary, b.summary
    same = (one.minimum, one.maximum) == (other.minimum, other.maximum)
    return same and one.minimum < one.maximum and math.isclose(one.norm, other.norm, rel_tol=1e-12)


def _transposed(evidence: Evidence, item: Divergence) -> float:
    """Tell how sure a transposition is: it is, where all values are known."""
    a, b = evidence.a.full(item.reference), evidence.b.full(item.port)
    if a is None or b is None or a.ndim != 2:  # noqa: PLR2004 - a matrix
        return 0.9
    return 1.0 if a.T.shape == b.shape and np.array_equal(a.T, b) else 0.5


def _drawn_alike(a: Contents, b: Contents) -> bool:
    """Tell whether the values have about the same size; few values say less."""
    size = math.prod(a.shape)
    within = max(SPREAD, 4 / math.sqrt(size))
    low, high = sorted((a.summary.norm, b.summary.norm))
    return low > 0 and high / low < 1 + within


def _alike(one: Divergence, other: Divergence) -> bool:
    """Tell whether a missing parameter and an extra one may be the same."""
    a, b = one.record.tensor, other.record.tensor
    return a is not None and b is not None and (a.shape, a.digest) == (b.shape, b.digest)


def contents(item: Divergence) -> tuple[Contents, Contents]:
    """Return both tensors of a difference of values."""
    if item.reference is None or item.port is None:
        message = f"diagnosis: expected two records, got {item.fault}"
        raise ValueError(message)
    a, b = item.reference.tensor, item.port.tensor
    if a is None or b is None:
        message = f"diagnosis: expected two tensors of {item.record.name}"
        raise ValueError(message)
    return a, b
