"""A trace of the C# trainer says what one of the Python trainer says, record by record."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

import bridge
from bridge.dotnet import IsolatedHost
from bridge.examples.variable_length import SeqModel
from bridge.models import MLP, DropoutNet, LeNet
from bridge.optim import create
from bridge.parity.compare import Rule
from bridge.trace import Record, Recorder, compare, read

pytestmark = pytest.mark.parity

SEED = 5
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def spread(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Compare one output with every target."""
    return functional.mse_loss(outputs.expand_as(targets), targets)


Specification = tuple[type[torch.nn.Module], str, tuple[int, ...], str, Loss]
CASES: dict[str, Specification] = {
    "MLP": (MLP, "MLP", (6, 1024), "cross_entropy", functional.cross_entropy),
    "LeNet": (LeNet, "LeNet", (5, 1, 28, 28), "cross_entropy", functional.cross_entropy),
    "LSTM": (SeqModel, "Examples.SeqModel", (7, 36), "mse_loss", spread),
    "dropout": (DropoutNet, "DropoutNet", (6, 8), "cross_entropy", functional.cross_entropy),
}
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"lr": 0.1, "momentum": 0.9},
    "adam": {"lr": 0.01, "weight_decay": 0.01, "amsgrad": True},
}


@pytest.mark.parametrize(
    ("case", "optimizer", "replicas"),
    [
        ("MLP", "sgd", 1),
        ("MLP", "adam", 2),
        ("LeNet", "adam", 1),
        ("LeNet", "sgd", 3),
        ("LSTM", "adam", 1),
        ("dropout", "sgd", 2),
    ],
)
def test_traces_are_equal(  # noqa: PLR0913, PLR0917 - one argument per dimension
    shared_host: IsolatedHost, rule: Rule, tmp_path: Path, case: str, optimizer: str, replicas: int
) -> None:
    """Every record is in both traces, in one order, with the same bits. Spec: R30.10."""
    record(shared_host, rule, tmp_path, CASES[case], optimizer, replicas)
    outcome = compare(tmp_path / "python", tmp_path / "csharp", rule=rule)
    assert outcome.verdict == "identical", outcome.reason
    assert outcome.notes == []
    assert outcome.unobserved == []
    if rule == "bitwise":
        assert outcome.bit_equal == outcome.records
        python, csharp = (read(tmp_path / side).records for side in ("python", "csharp"))
        assert [says(one) for one in python] == [says(other) for other in csharp]


def test_a_fault_of_the_port_is_named(
    shared_host: IsolatedHost, rule: Rule, tmp_path: Path
) -> None:
    """A learning rate 1 % too high shows in the first update, and nowhere before. Spec: R30.8."""
    record(shared_host, rule, tmp_path, CASES["LeNet"], "sgd", 1, rate=0.101)
    outcome = compare(tmp_path / "python", tmp_path / "csharp", rule=rule)
    assert outcome.verdict == "diverged"
    first, causes = outcome.first, [item.record for item in outcome.divergences if item.root]
    assert first is not None
    assert (first.record.kind, first.record.phase) == ("learning rate", "init")
    assert {(r.step, r.phase, r.kind) for r in causes} == {(0, "init", "learning rate")}
    moved = next(item for item in outcome.divergences if item.record.kind == "parameter")
    assert (moved.record.step, moved.record.phase, moved.record.name) == (0, "step", "conv1.weight")
    assert outcome.notes == [
        (
            "before step 0, replica 0, configuration optimizer0 group0.lr: "
            "0.1 in the reference, 0.101 in the port"
        )
    ]


def says(record: Record) -> object:
    """Take what both languages say of a record: all but the place in the code."""
    line = record.to_json()
    line.pop("at", None)
    return line


def record(  # noqa: PLR0913, PLR0917
    host: IsolatedHost,
    rule: Rule,
    folder: Path,
    case: Specification,
    name: str,
    replicas: int,
    rate: float | None = None,
) -> None:
    """Train both sides on the same batches, and record both; the port may have its own rate."""
    factory, type_name, shape, loss_name, loss = case
    dtype = "float32" if rule == "bitwise" else "float64"
    torch.manual_seed(SEED)
    model = factory().to(getattr(torch, dtype))
    options = OPTIMIZERS[name]
    theirs: dict[str, Any] = options if rate is None else {**options, "lr": rate}
    own = create(name, model.parameters(), **options)
    training = {"clip_norm": 0.5}
    trainer = bridge.Trainer(model, own, loss, ["cpu"] * replicas, **training)  # type: ignore[arg-type]
    with (
        host.trainer(
            f"BridgeSharp.Models.{type_name}",
            optimizer=name,
            loss=loss_name,
            replicas=replicas,
            dtype=dtype,
            seed=SEED,
            threads=1,
            training=training,
            **theirs,
        ) as port,
        port.trace(folder / "csharp"),
        Recorder(folder / "python", trainer),
    ):
        generator = torch.Generator().manual_seed(SEED)
        for _ in range(3):
            inputs = torch.randn(shape, generator=generator).to(getattr(torch, dtype))
            if loss_name == "cross_entropy":
                targets = torch.randint(0, 4, shape[:1], generator=generator)
            else:
                targets = torch.randn(shape[0], generator=generator).to(inputs.dtype)
            trainer.step(inputs, targets)
            port.step(inputs, targets)
