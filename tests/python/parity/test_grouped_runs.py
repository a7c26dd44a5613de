"""Every optimizer with every scheduler, unbroken and resumed in the other language."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest
import torch

from bridge.dotnet import IsolatedHost
from bridge.dotnet.session import Session
from bridge.dotnet.tensors import Layout
from bridge.optim import OPTIMIZERS, reference
from bridge.parity.compare import Rule, compare
from bridge.schedulers import SCHEDULERS
from tests.python.parity.grouped_run import ClosureRun, GroupedNet, GroupedRun, State

pytestmark = pytest.mark.parity

NAME = "BridgeSharp.Tests"
SEED, STEPS = 7, 9
FIRST = 3  # steps, none of which has an epoch's last batch
NAMES = [name for name in OPTIMIZERS if name != "lbfgs"]


class Run(Protocol):
    """A run of either language."""

    def step(self) -> float:
        """Train on the next batch."""

    @property
    def state(self) -> State:
        """The model's state, and the rates of the groups."""


class Port(Session):
    """A run of C#."""

    def __init__(self, host: IsolatedHost, assembly: Path, kind: str, *arguments: object) -> None:
        """Make the run; its seed is set before."""
        created = host.call(
            "loop.create",
            type=f"{NAME}.Parity.{kind}",
            assembly=str(assembly),
            arguments=[str(item) if isinstance(item, Path) else item for item in arguments],
            seed=SEED,
            threads=1,
        )
        super().__init__(host, created)

    def step(self) -> float:
        """Train on the next batch of the loader in C#."""
        layout = Layout("step")
        nothing = {name: layout.tree(torch.zeros(1)) for name in ("inputs", "targets")}
        with self._host.segment(layout.size) as memory:
            layout.write(memory)
            reply = self._host.call("loop.step", handle=self._handle, **nothing)
        return float(reply["loss"])

    @property
    def state(self) -> State:
        """The model's state, and the rates of the groups."""
        return self.state_dict()


@pytest.fixture(scope="module")
def assembly(host_folder: Path) -> Path:
    """Find the tests of C# beside the host in the build output, or skip."""
    found = host_folder.parents[1] / NAME / "release" / f"{NAME}.dll"
    if not found.is_file():
        pytest.skip(f"no {found.name} at {found}: run ./build.sh setup")
    return found


@pytest.mark.parametrize("optimizer", NAMES)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_groups_train_alike_and_go_on_in_the_other_language(  # noqa: PLR0913, PLR0917 - a case
    shared_host: IsolatedHost,
    assembly: Path,
    rule: Rule,
    tmp_path: Path,
    optimizer: str,
    scheduler: str,
) -> None:
    """Parameters and rates, also where gradients are None. Spec: R9.8, R27.1, R28.2, R28.5."""
    number = NAMES.index(optimizer) + list(SCHEDULERS).index(scheduler)
    cut = 1 + number % (STEPS - 1)
    version = reference()

    def python(kind: str, save: Path, load: Path | None = None) -> Run:
        torch.manual_seed(SEED)
        return GroupedRun(optimizer, scheduler, kind, save, cut, load)

    def csharp(kind: str, save: Path, load: Path | None = None) -> Port:
        named = (optimizer, scheduler, kind, version, save, cut, load)
        return Port(shared_host, assembly, "GroupedRun", *named)

    check(python, csharp, rule, tmp_path, cut)


@pytest.mark.parametrize("cut", [1, 4, 6])
@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_closures_train_alike_and_go_on_in_the_other_language(  # noqa: PLR0913, PLR0917 - a case
    shared_host: IsolatedHost,
    assembly: Path,
    rule: Rule,
    tmp_path: Path,
    search: str | None,
    cut: int,
) -> None:
    """LBFGS, in a checkpoint of a loop of one's own. Spec: R9.6, R9.9, R26.4, R27.3."""
    version = reference()

    def python(kind: str, save: Path, load: Path | None = None) -> Run:
        torch.manual_seed(SEED)
        return ClosureRun(search, kind, save, cut, load)

    def csharp(kind: str, save: Path, load: Path | None = None) -> Port:
        return Port(shared_host, assembly, "ClosureRun", search, kind, version, save, cut, load)

    check(python, csharp, rule, tmp_path, cut)


def check(
    python: Callable[..., Run], csharp: Callable[..., Port], rule: Rule, folder: Path, cut: int
) -> None:
    """Hold the unbroken run of C#, and what goes on in either language, against Python's."""
    for kind in ("float64", "float32") if rule == "bitwise" else ("float64",):
        files = [folder / f"{kind}-python", folder / f"{kind}-csharp"]
        expected = list(states(python(kind, files[0]), STEPS))
        assert_moved(expected)
        again = folder / "again"
        with csharp(kind, files[1]) as port:
            assert_alike(states(port, STEPS), expected, rule)
        assert_alike(states(python(kind, again, files[1]), STEPS - cut), expected[cut:], rule)
        with csharp(kind, again, files[0]) as port:
            assert_alike(states(port, STEPS - cut), expected[cut:], rule)


def states(run: Run, steps: int) -> Iterator[State]:
    """Train, and give the loss and a copy of the state after every step."""
    for _ in range(steps):
        loss = torch.tensor([run.step()], dtype=torch.float64)
        yield {"loss": loss, **{name: tensor.clone() for name, tensor in run.state.items()}}


def assert_alike(actual: Iterator[State], expected: list[State], rule: Rule) -> None:
    """Compare with the unbroken run after every step."""
    for step, (own, other) in enumerate(zip(expected, actual, strict=True)):
        differing = [pair.name for pair in compare(own, other, rule) if not pair.same]
        assert differing == [], f"step {step} of {len(expected)}"


def assert_moved(run: list[State]) -> None:
    """Training moved all but the layer that nothing sees, and the rates."""
    torch.manual_seed(SEED)
    for name, value in GroupedNet().state_dict().items():
        still = torch.equal(value.to(run[0][name].dtype), run[-1][name])
        assert still == name.startswith("spare"), name
    assert len({tuple(state["rates"].tolist()) for state in run}) > 1
