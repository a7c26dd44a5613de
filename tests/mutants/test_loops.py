"""A C# loop behind a handle: what it refuses."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from bridge.dotnet import DotnetError, Host
from tests.mutants.runs import Port
from tests.mutants.table import TASKS, Task


@pytest.fixture
def port(host: Host, assembly: Path) -> Iterator[Port]:
    """Make a loop."""
    with Port(host, assembly, TASKS["sgd"], "") as made:
        yield made


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        (
            "MLP",
            r"^loop: expected a class with step\(Tensor, Tensor\), got BridgeSharp.Mutants.MLP",
        ),
        (
            "Loop",
            r"^loop: expected a class with step\(Tensor, Tensor\), got BridgeSharp.Mutants.Loop",
        ),
        (
            "Nothing",
            r"^loop: expected a type of BridgeSharp.Mutants \(.*SgdLoop.*\), got \S+Nothing",
        ),
    ],
)
def test_types(host: Host, assembly: Path, loop: str, message: str) -> None:
    """A class that is no loop, an abstract one, and an unknown one are refused by name."""
    with pytest.raises(DotnetError, match=message):
        Port(host, assembly, Task(loop, [], ["{fault}"], "vectors"), "")


def test_assembly(host: Host, tmp_path: Path) -> None:
    """An assembly that is not there is refused by its path."""
    with pytest.raises(
        FileNotFoundError, match=r"loop: expected an assembly, found no file .*none.dll"
    ):
        Port(host, tmp_path / "none.dll", TASKS["sgd"], "")


def test_state_names(port: Port) -> None:
    """A state with a name missing and another one unknown is refused, and names both."""
    state = port.state_dict()
    state["other"] = state.pop("fc1.bias")
    with pytest.raises(
        DotnetError, match=r"loop: expected a state of .*: missing fc1.bias, unexpected other"
    ):
        port.load_state_dict(state)


def test_state_shapes(port: Port) -> None:
    """A tensor that would have to be broadcast is refused, and nothing is loaded before."""
    before = port.digest()
    state = {name: torch.zeros_like(value) for name, value in port.state_dict().items()}
    state["fc3.bias"] = torch.zeros(1, dtype=torch.float64)
    with pytest.raises(DotnetError, match=r"loop: expected fc3.bias of shape \(4\), got \(1\)"):
        port.load_state_dict(state)
    assert port.digest() == before


def test_handles(host: Host, port: Port) -> None:
    """A loop is no trainer, a trainer is no loop, and a closed loop is gone."""
    with pytest.raises(DotnetError, match="expected the handle of a trainer, got that of another"):
        port.set(lr=0.1)
    inputs, targets = torch.zeros(2, 12, dtype=torch.float64), torch.zeros(2, dtype=torch.int64)
    assert port.step(inputs, targets) > 0
    with host.trainer("BridgeSharp.Models.MLP", lr=0.1) as trainer:
        port._handle, own = trainer._handle, port._handle  # noqa: SLF001 - a wrong handle
        with pytest.raises(DotnetError, match="expected the handle of a loop, got that of another"):
            port.step(inputs, targets)
        port._handle = own  # noqa: SLF001
    port.close()
    with pytest.raises(DotnetError, match="facade: expected an open handle, got 0"):
        port.step(inputs, targets)
