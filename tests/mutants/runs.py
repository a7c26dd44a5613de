"""Trains a reference and a port on the same batches, and finds the first step that differs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from bridge.dotnet import DotnetError, Host
from bridge.dotnet.session import Session
from bridge.dotnet.tensors import Layout
from tests.mutants.batches import Batch, batches
from tests.mutants.reference.loops import LOOPS, Loop
from tests.mutants.table import Task

SEED = 3
LIMIT = 1e-9
"""The largest difference that is rounding, relative to the largest value of a tensor."""


@dataclass(frozen=True)
class Difference:
    """Where a port first differs from its reference.

    Attributes:
        step: from 1; 0 is before training.
        kind: what differs: ``manifest`` (names, shapes, dtypes, requires_grad), ``error`` (the port
            throws), ``loss`` or ``tensors``.
        names: the tensors that differ, by the reference's names, or the error.
    """

    step: int
    kind: str
    names: list[str]


class Port(Session):
    """A C# loop of the mutants' assembly."""

    def __init__(self, host: Host, assembly: Path, task: Task, fault: str) -> None:
        """Make the loop; its seed is set before."""
        created = host.call(
            "loop.create",
            type=f"BridgeSharp.Mutants.{task.loop}",
            assembly=str(assembly),
            arguments=task.arguments(fault),
            seed=SEED,
            threads=1,
        )
        super().__init__(host, created)

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> float:
        """Train on one batch and return its loss."""
        layout = Layout("step")
        batch = {"inputs": layout.tree(inputs), "targets": layout.tree(targets)}
        with self._host.segment(layout.size) as memory:
            layout.write(memory)
            reply = self._host.call("loop.step", handle=self._handle, **batch)
        return float(reply["loss"])


def first_difference(host: Host, assembly: Path, task: Task, fault: str) -> Difference | None:
    """Train both sides and return where they first differ, or None."""
    torch.manual_seed(SEED)
    reference = LOOPS[task.loop](*task.reference)
    with Port(host, assembly, task, fault) as port:
        names = matched(reference, port)
        if isinstance(names, Difference):
            return names
        if task.init == "copy":
            own = tensors(reference)
            port.load_state_dict({names[name]: value for name, value in own.items()})
        return _state_difference(0, reference, port, names) or _trained(
            reference, port, names, batches(task.data)
        )


def _trained(
    reference: Loop, port: Port, names: Mapping[str, str], data: Sequence[Batch]
) -> Difference | None:
    """Train, and return where the sides first differ."""
    for step, (inputs, targets) in enumerate(data, start=1):
        expected = reference.step(inputs, targets)
        try:
            actual = port.step(inputs, targets)
        except DotnetError as error:
            return Difference(step, "error", [f"{error}"])
        if apart(*torch.tensor([expected, actual], dtype=torch.float64)):
            return Difference(step, "loss", [f"{expected} and {actual}"])
        if found := _state_difference(step, reference, port, names):
            return found
    return None


def _state_difference(
    step: int, reference: Loop, port: Port, names: Mapping[str, str]
) -> Difference | None:
    """Compare all tensors."""
    actual = port.state_dict()
    expected = tensors(reference)
    wrong = [name for name, value in expected.items() if apart(value, actual[names[name]])]
    return Difference(step, "tensors", wrong) if wrong else None


def tensors(loop: Loop) -> dict[str, torch.Tensor]:
    """Return parameters and buffers of all replicas, each once, replica 0's by their names."""
    found: dict[str, torch.Tensor] = {}
    for index, replica in enumerate(loop.replicas):
        prefix = f"{index}: " if index else ""
        for name, value in _named(replica):
            found[prefix + name] = value
    return found


def matched(reference: Loop, port: Port) -> dict[str, str] | Difference:
    """Match names: exactly, or else, where none is the same, all of them by order."""
    expected = {name: _kind(value) for name, value in tensors(reference).items()}
    actual = {
        place["name"]: (place["shape"], getattr(torch, place["dtype"]), place["trainable"])
        for place in port.manifest
    }
    if not expected.keys() & actual.keys() and len(expected) == len(actual):
        names = dict(zip(expected, actual, strict=True))
    else:
        names = {name: name for name in [*expected, *actual]}
    wrong = [name for name, own in names.items() if expected.get(name) != actual.get(own)]
    return Difference(0, "manifest", wrong) if wrong else names


def apart(expected: torch.Tensor, actual: torch.Tensor) -> bool:
    """Tell whether two tensors differ by more than rounding; NaN differs."""
    expected, actual = expected.detach().double(), actual.double()
    scale = expected.abs().max().clamp_min(1e-6)
    return not bool(((expected - actual).abs() <= LIMIT * scale).all())


def _named(module: nn.Module) -> list[tuple[str, torch.Tensor]]:
    """List parameters and buffers."""
    return [*module.named_parameters(), *module.named_buffers()]


def _kind(value: torch.Tensor) -> tuple[list[int], torch.dtype, bool]:
    """Return shape, dtype and requires_grad of a tensor."""
    return list(value.shape), value.dtype, value.requires_grad
