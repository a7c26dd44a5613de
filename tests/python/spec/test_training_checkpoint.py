"""Whole training runs in files."""

import random
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.optim import SGD, lr_scheduler

import bridge
from bridge.checkpoint import CheckpointError, read, write
from bridge.models import MLP, DropoutNet
from bridge.optim import OPTIMIZERS
from tests.python.spec.checkpoints import assert_exact
from tests.python.spec.runs import STEPS_PER_EPOCH, broken, loader, trainer
from tests.python.spec.trainers import copied, equal, everything

FILE = "run.safetensors"
EPOCHS = 3
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "accumulate": {"accumulate": 3, "clip_norm": 0.5},
    "all": {"mode": "all", "buffers": "each"},
    "mean": {"buffers": "mean", "accumulate": 2, "reduction": "mean"},
    "schedule": {"scheduler": lambda own: lr_scheduler.StepLR(own, 2)},
    "scaling": {"scaling": bridge.LinearScaling(2, warm_up=6)},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_run_goes_on_as_if_unbroken(tmp_path: Path, options: dict[str, Any]) -> None:
    """Saved at any step, an epoch's last too, fit ends with the same bits. Spec: R28.2."""
    path = tmp_path / FILE
    unbroken, data = trainer(**options), loader()
    unbroken.fit(data, EPOCHS)
    expected = without_gradients(unbroken)
    for cut in range(1, EPOCHS * STEPS_PER_EPOCH + 1):
        data = loader()
        broken(trainer(**options), data, path, cut, EPOCHS)
        resumed, data = trainer(**options), loader()
        torch.rand(5)
        assert resumed.load(path, data) == {"best": 0.5}
        assert resumed.steps == cut
        resumed.fit(data, EPOCHS - data.epoch)
        alike = equal(without_gradients(resumed), expected)
        assert alike, cut
        assert resumed.steps == unbroken.steps


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name != "lbfgs"])
def test_every_optimizer_goes_on(tmp_path: Path, name: str) -> None:
    """The state keeps its dtypes; a loop of one's own does too. Spec: R28.2, R28.4."""
    path = tmp_path / FILE
    unbroken, data = trainer(name), loader()
    for step, batch in enumerate(chain(data, data)):
        unbroken.step(*batch)
        if step == 5:
            unbroken.save(path, data)
    expected = without_gradients(unbroken)
    resumed, data = trainer(name), loader()
    resumed.load(path, data)
    for batch in data:
        resumed.step(*batch)
    alike = equal(without_gradients(resumed), expected)
    assert alike


def test_saving_changes_and_draws_nothing(tmp_path: Path) -> None:
    """Every bit is as it was; loaded and saved it is the same. Spec: R28.1, R28.5."""
    run, data = trainer(accumulate=2), loader()
    broken(run, data, tmp_path / FILE, 5, EPOCHS)
    before = everything(run)
    run.save(tmp_path / "a", data, (1, {"x": torch.ones(2)}))
    run.save(tmp_path / "b", data, (1, {"x": torch.ones(2)}))
    alike = equal(everything(run), before)
    assert alike
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    other, data = trainer(accumulate=2), loader()
    extra = other.load(tmp_path / "a", data)
    other.save(tmp_path / "c", data, extra)
    assert (tmp_path / "c").read_bytes() == (tmp_path / "a").read_bytes()
    assert_exact(read(tmp_path / "c"), read(tmp_path / "a"))


def test_all_that_differs_is_listed(tmp_path: Path) -> None:
    """A file of another trainer is refused, and nothing changes. Spec: R28.3."""
    path = tmp_path / FILE
    run, data = trainer(accumulate=2, clip_norm=1, scaling=bridge.LinearScaling(2, 3)), loader()
    run.save(path, data)
    other = trainer("sgd", mode="all", scheduler=lambda own: lr_scheduler.StepLR(own, 2))
    refused(
        other,
        lambda: other.load(path),
        "load: expected a trainer like that of run.safetensors, got another:\n"
        "\toptimizer: Adam in the file, SGD here\n"
        "\tscheduler: None in the file, StepLR here\n"
        "\tmode: master in the file, all here\n"
        "\taccumulate: 2 in the file, 1 here\n"
        "\tclip_norm: 1.0 in the file, None here\n"
        "\tscaling: factor 2.0, warm_up 3 in the file, None here\n"
        "\tloader: one in the file, none here",
    )


def test_another_model_is_refused(tmp_path: Path) -> None:
    """Its tensors are listed; a subclass of another name is none. Spec: R28.3."""
    path = tmp_path / FILE
    plain("DropoutNet").save(path)

    class Renamed(DropoutNet):
        """The same by another name."""

    bridge.Trainer(Renamed(), lambda p: SGD(p, 0.1), functional.cross_entropy).load(path)
    other = plain("MLP")
    refused(other, lambda: other.load(path), ".*\n\tsize mismatch for fc1.weight: .*")


def test_other_groups_are_refused(tmp_path: Path) -> None:
    """A state goes to the parameters that it is of. Spec: R28.3."""
    path = tmp_path / FILE
    plain("DropoutNet").save(path)
    model = DropoutNet()
    groups = [{"params": model.fc2.parameters()}, {"params": model.fc1.parameters()}]
    other = bridge.Trainer(model, SGD(groups, 0.1), functional.cross_entropy)
    line = "fc1.weight in group 0 in the file, fc2.weight in group 0 here"
    refused(other, lambda: other.load(path), f".*\n\tparameter 0 of the optimizer: {line}")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"kind": "other"},
            "the state of a trainer in run.safetensors, got another tree",
        ),
        ({"version": 2}, "version 1 of a trainer's state in run.safetensors, got 2"),
        (
            {"more": 1},
            "the parts of a trainer's state in run.safetensors, got another set: more",
        ),
    ],
)
def test_other_trees_are_refused(tmp_path: Path, change: dict[str, Any], expected: str) -> None:
    """Another tree and another version are refused by that. Spec: R28.3."""
    path = tmp_path / FILE
    run = trainer()
    run.save(path)
    write(read(path) | change, path)
    refused(run, lambda: run.load(path), f"load: expected {expected}")


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    """So is a file with a flipped bit, or one that ends early. Spec: R28.3."""
    path = tmp_path / FILE
    run = trainer()
    run.save(path)
    content = path.read_bytes()
    pick = random.Random(0)  # noqa: S311 - which bit
    for _ in range(20):
        changed = bytearray(content)
        changed[pick.randrange(len(content))] ^= 1 << pick.randrange(8)
        for damaged in (changed, content[: pick.randrange(len(content))]):
            path.write_bytes(damaged)
            refused(run, lambda: run.load(path), ".*run.safetensors.*")


class Fragile(SGD):
    """An optimizer that fails after it has taken a state."""

    fails = False

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state, and fail."""
        super().load_state_dict(state_dict)
        if self.fails:
            message = "no"
            raise OSError(message)


def test_a_failure_half_way_changes_nothing(tmp_path: Path) -> None:
    """Model, optimizer, loader and random states are as they were. Spec: R28.3."""
    path = tmp_path / FILE

    def make() -> bridge.Trainer:
        make_own = lambda own: Fragile(own, 0.1, momentum=0.9)  # noqa: E731
        return bridge.Trainer(DropoutNet(), make_own, functional.cross_entropy, ["cpu"] * 2)

    run, data = make(), small_loader()
    run.fit(data)
    run.save(path, data)
    other, data = make(), small_loader()
    other.step(*next(iter(data)))
    before, position = everything(other), data.state_dict()
    other.optimizer.fails = True  # type: ignore[attr-defined]
    with pytest.raises(OSError, match="no"):
        other.load(path, data)
    alike = equal(everything(other), before)
    assert alike
    assert data.state_dict() == position
    other.optimizer.fails = False  # type: ignore[attr-defined]
    other.load(path, data)
    assert equal(copied(list(other.state_dict().values())), list(run.state_dict().values()))


class Own(SGD):
    """An optimizer whose state no file holds."""

    def state_dict(self) -> dict[str, Any]:
        """Return a set among others."""
        return {**super().state_dict(), "seen": {1}}


def test_what_no_file_holds_is_refused_by_name(tmp_path: Path) -> None:
    """An optimizer, and what is put beside the state. Spec: R28.1."""
    run = bridge.Trainer(DropoutNet(), lambda p: Own(p, 0.1), functional.cross_entropy)
    kinds = "a dict, list, tuple, tensor, number, text, boolean or None"
    with pytest.raises(
        TypeError, match=rf'^save: Own: expected {kinds} at tree\["seen"\], got set$'
    ):
        run.save(tmp_path / FILE)
    with pytest.raises(TypeError, match=r"^save: set: expected .* at tree, got set$"):
        plain("DropoutNet").save(tmp_path / FILE, extra={1})
    assert list(tmp_path.iterdir()) == []


def without_gradients(run: bridge.Trainer) -> Any:  # noqa: ANN401 - a tree
    """Copy the state of a run; the gradients of the last step are no part of it."""
    for replica in run.replicas:
        replica.zero_grad(set_to_none=True)
    return everything(run)


def plain(name: str) -> bridge.Trainer:
    """Make a trainer of a model."""
    model = {"DropoutNet": DropoutNet, "MLP": MLP}[name]()
    return bridge.Trainer(model, lambda p: SGD(p, 0.1), functional.cross_entropy)


def small_loader() -> Any:  # noqa: ANN401 - a loader
    """Make a loader of numbers of single precision."""
    data = loader()
    read_batch = data._read  # noqa: SLF001
    data._read = lambda rows: tuple(  # noqa: SLF001
        part.float() if part.is_floating_point() else part for part in read_batch(rows)
    )
    return data


def refused(run: bridge.Trainer, load: Callable[[], object], expected: str) -> None:
    """Check that a load is refused with a text, and that nothing changes."""
    before = everything(run)
    with pytest.raises(
        CheckpointError, match=f"(?s)^{expected}$" if "*" in expected else None
    ) as error:
        load()
    if "*" not in expected:
        assert str(error.value) == expected
    alike = equal(everything(run), before)
    assert alike
