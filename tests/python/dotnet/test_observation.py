"""A user's own port is observed as it is, and compared with its Python twin."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

import bridge
from bridge.dotnet import IsolatedHost
from bridge.parity import family
from bridge.parity.compare import Rule
from bridge.trace import Outcome, Recorder, compare, read

SEED = 3


class Unhooked(torch.nn.Module):
    """A perceptron that runs one of its layers twice."""

    def __init__(self) -> None:
        """Make the layers in the order of the port."""
        super().__init__()
        self.fc1 = torch.nn.Linear(4, 4)
        self.act = torch.nn.ReLU(inplace=True)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.Tanh()])
        self.fc2 = torch.nn.Linear(4, 2)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return two values for four."""
        values = self.act(self.fc1(self.act(self.fc1(values))))
        for layer in self.layers:
            values = layer(values)
        return self.fc2(values)  # type: ignore[no-any-return]


class Unregistered(torch.nn.Module):
    """A perceptron that registers all of its layers."""

    def __init__(self) -> None:
        """Make the layers in the order of the port."""
        super().__init__()
        self.last = torch.nn.Linear(4, 2)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)])

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return two values for four."""
        return self.last(self.layers[1](self.layers[0](values)).tanh())  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def rule(shared_host: IsolatedHost) -> Iterator[Rule]:
    """Take rule bitwise where both sides are of one build family, else float32."""
    threads = torch.get_num_threads()
    yield family.rule(family.compare(shared_host, 1))
    torch.set_num_threads(threads)


@pytest.mark.parametrize("replicas", [1, 2])
def test_calls_of_forward_are_in_the_trace(
    shared_host: IsolatedHost, user_code: Path, rule: Rule, tmp_path: Path, replicas: int
) -> None:
    """Both languages say the same, gradients too; no file changes. Spec: R33.1, R33.2, R33.4."""
    files = {path: path.read_bytes() for path in user_code.parent.glob("*.dll")}
    dtype = "float32" if rule == "bitwise" else "float64"
    outcome = record(shared_host, user_code, rule, tmp_path, Unhooked, dtype, replicas)
    assert outcome.verdict == "identical", outcome.reason
    assert outcome.notes == []
    assert all(" activation layers: no call" in line for line in outcome.unobserved)
    records = [one for one in read(tmp_path / "csharp").records if one.step == 0]
    calls = [one for one in records if one.kind == "activation" and one.replica == 0]
    names = [one.name for one in calls if one.unobserved is None]
    assert names == ["fc1", "act", "fc1", "act", "layers.0", "layers.1", "fc2", ""]
    assert all("Modules.cs:" in str(one.at) for one in calls if one.name.startswith("fc"))
    gradients = [one for one in records if one.kind == "gradient" and one.part and not one.replica]
    assert [one.name for one in gradients] == names[::-1]
    assert files == {path: path.read_bytes() for path in files}


def test_layers_that_are_not_registered_are_found(
    shared_host: IsolatedHost, user_code: Path, rule: Rule, tmp_path: Path
) -> None:
    """The trace says so, and the first update shows it. Spec: R33.3."""
    if rule != "bitwise":
        pytest.skip("the builds differ: in float64 the port's own layers would stay in float32")
    outcome = record(shared_host, user_code, rule, tmp_path, Unregistered, "float32", 1)
    assert outcome.verdict == "diverged"
    first = next(item.record for item in outcome.divergences if item.record.kind == "parameter")
    assert (first.step, first.phase, first.name) == (0, "step", "layers.0.weight")
    warning = "not registered: the optimizer and state_dict do not see it"
    assert [note for note in outcome.notes if "layers.0 registered" in note and warning in note]


def record(  # noqa: PLR0913, PLR0917
    host: IsolatedHost,
    code: Path,
    rule: Rule,
    folder: Path,
    model: type[torch.nn.Module],
    dtype: str,
    replicas: int,
) -> Outcome:
    """Train both sides on the same batches, record both, and compare."""
    torch.manual_seed(SEED)
    own = model().to(getattr(torch, dtype))
    optimizer = torch.optim.SGD(own.parameters(), lr=0.1, momentum=0.5)
    trainer = bridge.Trainer(own, optimizer, functional.cross_entropy, ["cpu"] * replicas)
    options: dict[str, Any] = {
        "lr": 0.1,
        "momentum": 0.5,
        "dtype": dtype,
        "seed": SEED,
        "threads": 1,
    }
    name = f"UserCode.{model.__name__}"
    with (
        host.trainer(name, assembly=code, replicas=replicas, **options) as port,
        port.trace(folder / "csharp", activation_gradients=True),
        Recorder(folder / "python", trainer, activation_gradients=True),
    ):
        generator = torch.Generator().manual_seed(SEED)
        for _ in range(2):
            inputs = torch.randn(6, 4, generator=generator).to(getattr(torch, dtype))
            targets = torch.randint(0, 2, (6,), generator=generator)
            trainer.step(inputs, targets)
            port.step(inputs, targets)
    return compare(folder / "python", folder / "csharp", rule=rule)
