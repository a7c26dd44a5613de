"""A replay finds all faults of a port in one run."""

from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

import bridge
from bridge.trace import read
from bridge.trace.diagnosis import diagnose
from bridge.trace.python_runner import PythonRunner
from bridge.trace.replay import Replay, replay
from tests.python.trace_faults.bed import Loop
from tests.python.trace_faults.models import Mlp


def reference(path: Path) -> None:
    """Record a healthy loop with all that a replay needs."""
    own = Loop()
    model = own.model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    with bridge.trace(path, model, optimizer, full="*", activation_gradients=True) as trace:
        for step, batch in enumerate(own.batches()):
            own.step(trace, model, optimizer, batch, step)


class Port(Mlp):
    """A port with three faults, each of which hides the next."""

    def __init__(self) -> None:
        """Replace an activation and a layer."""
        super().__init__()
        self.act.forward = functional.gelu  # type: ignore[assignment]
        layer = self.fc2
        layer.forward = lambda x: functional.linear(x, layer.weight)  # type: ignore[assignment]


def replayed(tmp_path: Path, model: nn.Module, momentum: float) -> Replay:
    """Replay a port."""
    reference(tmp_path / "a")
    runner = PythonRunner(model, lambda own: torch.optim.SGD(own, lr=1.0, momentum=momentum))
    return replay(tmp_path / "a", runner, tmp_path / "b")


def test_all_faults_are_listed_in_one_run(tmp_path: Path) -> None:
    """An activation, a bias and the momentum are found and named, though each hides the next.

    Spec: R35.7
    """
    found = replayed(tmp_path, Port().double(), momentum=0.8)
    roots = {(i.record.phase, i.record.name) for i in found.outcome.divergences if i.root}
    layers = {name for phase, name in roots if phase == "forward"}
    assert layers == {"act", "fc2"}
    assert {name for phase, name in roots if phase == "backward"} <= {"fc2.weight"}
    assert ("step", "fc1.weight") in roots
    names = [item.name for item in diagnose(found.outcome, read(tmp_path / "a"), found.trace)]
    assert {"wrong activation", "missing bias", "momentum coefficient"} <= set(names)


def test_a_healthy_port_has_no_fault(tmp_path: Path) -> None:
    """Layers, gradients and updates of a healthy port give the bits of the reference.

    Spec: R35.7
    """
    found = replayed(tmp_path, Mlp().double(), momentum=0.9)
    assert found.outcome.verdict == "identical", found.outcome.reason


def test_what_cannot_be_replayed_is_listed(tmp_path: Path) -> None:
    """A layer that throws is not observed, with the reason.

    Spec: R35.7
    """
    model = Mlp().double()
    model.act.forward = functional.cross_entropy  # type: ignore[assignment]
    found = replayed(tmp_path, model, momentum=0.9)
    assert any(
        "act" in line and "could not be replayed" in line for line in found.outcome.unobserved
    )
