"""Trains a reference and a port on the same batches, and finds the first step that differs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True)
class Difference:
    """Where a port first differs from its reference.

    Attributes:
        step: from 1; 0 is before training.
        what: the loss, tensors, or an error.
    """

    step: int
    what: str


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
        if names is None:
            return Difference(0, "names, shapes, dtypes or requires_grad")
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
            return Difference(step, f"{error}")
        if apart(torch.tensor(expected), torch.tensor(actual)):
            return Difference(step, f"loss {expected} and {actual}")
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
    return Difference(step, ", ".join(wrong)) if wrong else None


def tensors(loop: Loop) -> dict[str, torch.Tensor]:
    """Return parameters and buffers of all replicas, each once, replica 0's by their names."""
    found: dict[str, torch.Tensor] = {}
    for index, replica in enumerate(loop.replicas):
        prefix = f"{index}: " if index else ""
        for name, value in _named(replica):
            found[prefix + name] = value.detach()
    return found


def matched(reference: Loop, port: Port) -> dict[str, str] | None:
    """Match names: exactly, or else all of them by order; None where the tensors differ."""
    expected = {
        f"{index}: {name}" if index else name: (list(value.shape), value.dtype, value.requires_grad)
        for index, replica in enumerate(reference.replicas)
        for name, value in _named(replica)
    }
    actual = {place["name"]: _kind(place) for place in port.manifest}
    if expected.keys() == actual.keys():
        return {name: name for name in expected} if expected == actual else None
    if expected.keys() & actual.keys() or list(expected.values()) != list(actual.values()):
        return None
    return dict(zip(expected, actual, strict=True))


def apart(expected: torch.Tensor, actual: torch.Tensor) -> bool:
    """Tell whether two tensors differ by more than rounding; NaN differs."""
    expected, actual = expected.double(), actual.double()
    scale = expected.abs().max().clamp_min(1e-6)
    return not bool(((expected - actual).abs() <= LIMIT * scale).all())


def _named(module: nn.Module) -> list[tuple[str, torch.Tensor]]:
    """List parameters and buffers."""
    return [*module.named_parameters(), *module.named_buffers()]


def _kind(place: Mapping[str, Any]) -> tuple[list[int], torch.dtype, bool]:
    """Return shape, dtype and requires_grad of a tensor in a manifest."""
    return place["shape"], getattr(torch, place["dtype"]), place["trainable"]
