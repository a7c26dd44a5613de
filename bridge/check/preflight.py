"""Compares what both sides start from, before a step is made."""

from collections.abc import Iterator, Mapping
from typing import Any

from bridge.check.result import Finding
from bridge.trace.reader import Trace
from bridge.trace.record import Contents

_STATE = ("parameter", "buffer")
Tensors = dict[str, tuple[str, Contents]]


def tensors(trace: Trace) -> Tensors:
    """List the initial parameters and buffers of replica 0: kind and contents by name."""
    return {
        record.name: (record.kind, record.tensor)
        for record in trace.records
        if record.phase == "init"
        and record.replica == 0
        and record.kind in _STATE
        and record.tensor is not None
    }


def match(
    reference: Tensors, port: Tensors, given: Mapping[str, str]
) -> tuple[dict[str, str], list[Finding]]:
    """Match names: by the table of the user, exactly, then by kind, shape and order.

    Returns:
        Every name of the reference that has one of the port, and what was found: a note for what
        has another name, an error for what has none.

    Spec: R34.2
    """
    names = {own: other for own in reference if (other := _renamed(own, given)) in port}
    rest = [name for name in port if name not in names.values()]
    findings = []
    for own in [name for name in reference if name not in names]:
        kind, tensor = reference[own]
        like = (kind, tensor.shape)
        found = next((n for n in rest if (port[n][0], port[n][1].shape) == like), None)
        if found is None:
            message = f"{kind} {own} {list(tensor.shape)} has no counterpart in the port"
            findings.append(Finding("error", "names", message))
            continue
        rest.remove(found)
        names[own] = found
        message = f"{own} is taken for the port's {found}: next of shape {list(tensor.shape)}"
        findings.append(Finding("note", "names", message))
    for name in rest:
        kind, tensor = port[name]
        message = f"{kind} {name} {list(tensor.shape)} of the port has none in the reference"
        findings.append(Finding("error", "names", message))
    return names, findings


def compare(reference: Tensors, port: Tensors, names: Mapping[str, str]) -> Iterator[Finding]:
    """Compare kinds, shapes, dtypes and order of what was matched.

    Spec: R34.2
    """
    for own, other in names.items():
        (kind, a), (other_kind, b) = reference[own], port[other]
        for what, one, two in (
            ("kind", kind, other_kind),
            ("shape", list(a.shape), list(b.shape)),
            ("dtype", a.dtype, b.dtype),
        ):
            if one != two:
                message = f"{own}: {one} in the reference, {two} in the port"
                yield Finding("error", what, message)
    ordered = [names[own] for own in reference if own in names]
    if ordered != [name for name in port if name in ordered]:
        yield Finding("note", "order", "the port has its parameters in another order")


def described(reference: Mapping[str, Any], port: Mapping[str, Any]) -> Iterator[Finding]:
    """Compare ties, schedulers, threads and first draws.

    Spec: R34.2
    """
    for what, own in reference.items():
        if own != port[what]:
            message = f"{own} in the reference, {port[what]} in the port"
            yield Finding("note", what, message)


def _renamed(name: str, given: Mapping[str, str]) -> str:
    """Apply the user's table, to a name or to what is inside of a layer."""
    for own, other in given.items():
        if name == own or name.startswith(f"{own}."):
            return other + name[len(own) :]
    return name
