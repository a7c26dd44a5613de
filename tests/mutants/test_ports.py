"""Healthy ports equal their reference, and each mutant differs where the table says."""

from collections import Counter
from pathlib import Path

import pytest
import torch

from bridge.dotnet import Host
from tests.mutants.batches import batches
from tests.mutants.runs import first_difference
from tests.mutants.table import HEALTHY, MUTANTS, TASKS, Mutant

pytestmark = pytest.mark.parity
PHASES = ("init", "scatter", "forward", "loss", "backward", "reduce", "clip", "step", "resync")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Keep the order of summation."""
    torch.set_num_threads(1)


@pytest.mark.parametrize(("task", "fault"), HEALTHY)
def test_healthy(host: Host, assembly: Path, task: str, fault: str) -> None:
    """A healthy port trains as its reference does, up to rounding."""
    assert first_difference(host, assembly, TASKS[task], fault) is None


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.id for mutant in MUTANTS])
def test_mutant(host: Host, assembly: Path, mutant: Mutant) -> None:
    """A mutant first differs at its step, and in what its phase leaves traces in."""
    found = first_difference(host, assembly, TASKS[mutant.task], mutant.fault)
    assert found is not None, f"{mutant.id} equals its reference"
    assert found.step == mutant.step, found
    assert found.kind == expected_kind(mutant), found
    if found.kind in {"manifest", "tensors"} and "." in mutant.place:
        assert any(mutant.place in name for name in found.names), found


def expected_kind(mutant: Mutant) -> str:
    """Tell what shows a fault first: a loss is computed before anything is updated."""
    if mutant.phase == "init":
        return "tensors" if TASKS[mutant.task].init == "seed" else "manifest"
    if mutant.throws:
        return "error"
    of_statistics = mutant.place.endswith("running_mean")
    return "loss" if mutant.phase in {"forward", "loss"} and not of_statistics else "tensors"


def test_table() -> None:
    """Mutants have an id of their own, a known phase, and a sentence; a dozen are no models."""
    assert max(Counter(mutant.id for mutant in MUTANTS).values()) == 1
    assert {mutant.phase for mutant in MUTANTS} <= set(PHASES)
    assert all(mutant.wrong.endswith(".") for mutant in MUTANTS)
    assert all(mutant.earliest is None or mutant.earliest < mutant.step for mutant in MUTANTS)
    assert sum(mutant.kind != "model" for mutant in MUTANTS) >= 12


def test_batches() -> None:
    """Batches are the same each time; their sizes are not all divisible by the replicas."""
    first, second = batches("tokens"), batches("tokens")
    assert all(
        torch.equal(a, b)
        for x, y in zip(first, second, strict=True)
        for a, b in zip(x, y, strict=True)
    )
    assert {len(inputs) % 2 for inputs, _ in first} == {0, 1}
