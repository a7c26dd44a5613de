"""A run that is saved in one language goes on in the other as if it had never stopped."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

import bridge
from bridge import checkpoint, schedulers
from bridge.dotnet import IsolatedHost
from bridge.models import DropoutNet, SyncNet
from bridge.optim import OPTIMIZERS, create
from bridge.parity.compare import Rule, compare

pytestmark = pytest.mark.parity

SEED, STEPS = 5, 6
State = dict[str, torch.Tensor]
MODELS = {"DropoutNet": DropoutNet, "SyncNet": SyncNet}
SCHEDULERS: list[dict[str, Any]] = [
    {},
    {"name": "StepLR", "step_size": 2, "gamma": 0.5},
    {"name": "OneCycleLR", "max_lr": 0.01, "total_steps": 20, "cycle_momentum": False},
    {
        "name": "SequentialLR",
        "milestones": [2],
        "schedulers": [
            {"name": "LinearLR"},
            {"name": "CosineAnnealingWarmRestarts", "T_0": 2},
        ],
    },
    {"name": "MultiStepLR", "milestones": [1, 3, 3]},
]
NAMES = [name for name in OPTIMIZERS if name != "lbfgs"]
CASES = [
    (
        name,
        SCHEDULERS[index % len(SCHEDULERS)],
        list(MODELS)[index % 2],
        1 + index % 2,
        index % STEPS,
    )
    for index, name in enumerate([*NAMES, "adam", "nadam", "asgd", "sgd"])
]


@pytest.mark.parametrize(
    ("name", "scheduler", "model", "accumulate", "cut"),
    CASES,
    ids=[f"{case[0]} {case[1].get('name')} {case[4]}" for case in CASES],
)
def test_a_saved_run_goes_on_in_the_other_language(  # noqa: PLR0913, PLR0917 - a case
    shared_host: IsolatedHost,
    rule: Rule,
    tmp_path: Path,
    name: str,
    scheduler: dict[str, Any],
    model: str,
    accumulate: int,
    cut: int,
) -> None:
    """Both take the file of either, and all four go on alike. Spec: R28.2, R28.5."""
    options: dict[str, Any] = {"lr": 1e-3, "momentum": 0.9} if name == "sgd" else {}
    kinds = ("float64", "float32") if rule == "bitwise" else ("float64",)

    def scheduled(optimizer: torch.optim.Optimizer) -> Any:  # noqa: ANN401 - a scheduler
        return schedulers.create(optimizer=optimizer, **scheduler)

    def python(kind: str) -> bridge.Trainer:
        torch.manual_seed(SEED)
        return bridge.Trainer(
            MODELS[model]().to(getattr(torch, kind)),
            lambda parameters: create(name, parameters, **options),
            functional.cross_entropy,
            ["cpu"] * 2,
            accumulate=accumulate,
            scheduler=scheduled if scheduler else None,
        )

    def csharp(kind: str) -> Any:  # noqa: ANN401 - a trainer
        return shared_host.trainer(
            f"BridgeSharp.Models.{model}",
            optimizer=name,
            dtype=kind,
            seed=SEED,
            threads=1,
            replicas=2,
            training={"accumulate": accumulate, "scheduler": scheduler or None},
            **options,
        )

    for kind in kinds:
        files = [tmp_path / f"{kind}-python", tmp_path / f"{kind}-csharp"]
        expected = run(python(kind), kind, files[0], cut)
        with csharp(kind) as port, csharp(kind) as resumed:
            assert_alike(run(port, kind, files[1], cut), expected, rule)
            for trainer, file in ((python(kind), files[1]), (resumed, files[0])):
                trainer.load(file)
                again = tmp_path / "again"
                assert_alike(run(trainer, kind, again, cut, cut), expected[cut:], rule)
                assert_same_tree(checkpoint.read(again), checkpoint.read(file))


def run(trainer: Any, kind: str, file: Path, cut: int, start: int = 0) -> list[State]:  # noqa: ANN401
    """Train to the end, save on the way, and return what the state was after every step."""
    states = []
    for step, inputs, targets in batches(kind, range(start, STEPS)):
        if step == cut:
            trainer.save(file)
        trainer.step(inputs, targets)
        states.append({name: tensor.clone() for name, tensor in trainer.state_dict().items()})
    return states


def batches(kind: str, steps: range) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """Give the batches of some steps."""
    for step in steps:
        generator = torch.Generator().manual_seed(SEED + step)
        inputs = torch.randn(6, 8, generator=generator).to(getattr(torch, kind))
        yield step, inputs, torch.randint(0, 4, (6,), generator=generator)


def assert_alike(actual: list[State], expected: list[State], rule: Rule) -> None:
    """Compare with the unbroken run after every step."""
    assert len(actual) == len(expected)
    for step, (own, other) in enumerate(zip(expected, actual, strict=True)):
        differing = [pair.name for pair in compare(own, other, rule) if not pair.same]
        assert differing == [], f"step {step}"


def assert_same_tree(actual: Any, expected: Any, path: str = "tree") -> None:  # noqa: ANN401
    """Compare two trees: types, order of keys, and every bit of a tensor.

    An option that Python has as a whole number, such as ``dampening=0``, is a float in C#.
    """
    option = (
        ("param_groups" in path or "eta_min" in path)
        and type(actual) is float
        and type(expected) is int
    )
    assert option or type(actual) is type(expected), path
    if isinstance(expected, dict):
        assert list(actual) == list(expected), path
        for key, part in expected.items():
            assert_same_tree(actual[key], part, f"{path}[{key!r}]")
    elif isinstance(expected, list | tuple):
        assert len(actual) == len(expected), path
        for index, part in enumerate(expected):
            assert_same_tree(actual[index], part, f"{path}[{index}]")
    elif isinstance(expected, torch.Tensor):
        assert actual.dtype == expected.dtype, path
        assert actual.numpy().tobytes() == expected.numpy().tobytes(), path
    else:
        assert actual == expected or actual != actual, path  # noqa: PLR0124 - NaN
