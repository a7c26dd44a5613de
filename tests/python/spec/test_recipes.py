"""Whole jobs and their options."""

import math
from pathlib import Path

import pytest
import torch

from bridge import ReplicaError
from bridge.recipes import FashionLeNet, Options
from tests.python.spec.files import write_split
from tests.python.spec.vectors import Case, cases, number, refusal


def write_data(folder: Path) -> None:
    """Write the data set that the vectors describe."""
    images = torch.arange(10 * 784) * 31 % 251
    for stem in ("train", "t10k"):
        write_split(folder, stem, images.reshape(10, 28, 28), range(10))


@cases("options")
def test_options(case: Case) -> None:
    """Defaults, limits and what follows from options are those of the vectors. Spec: R14.1."""
    given = case["options"]
    with refusal(case):
        options = Options(**{**given, "lr": number(given["lr"])} if "lr" in given else given)
        for name, expected in case["expected"].items():
            assert getattr(options, name) == expected, name


@cases("recipe")
def test_recipe(case: Case, tmp_path: Path) -> None:
    """Weights, batches and steps are those of the vectors. Spec: R14.2, R14.3, R10.4."""
    write_data(tmp_path)
    recipe = FashionLeNet(Options(**case["options"], data=str(tmp_path)))
    assert recipe.steps_per_epoch == case["steps_per_epoch"]
    assert recipe.planned_steps == case["planned_steps"]
    assert recipe.digest() == case["initial"]
    steps = [recipe.step() for _ in range(recipe.planned_steps)]
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert [step.samples for step in steps] == case["samples"]
    assert [step.batch for step in steps] == case["batches"]
    assert all(math.isfinite(step.loss) for step in steps)
    assert recipe.digest() != case["initial"]


@cases("recipe")
def test_a_step_that_fails_is_repeated(case: Case, tmp_path: Path) -> None:
    """However often it fails, the batch is the same, and nothing of it is left. Spec: R14.4."""
    write_data(tmp_path)
    options = Options(**case["options"], data=str(tmp_path))
    recipe, other = FashionLeNet(options), FashionLeNet(options)
    bad: list[str] = []

    def fail(*_: object) -> None:
        if bad:
            raise ValueError(bad.pop())

    recipe.trainer.model.register_forward_pre_hook(fail)
    for batch in case["batches"]:
        bad += ["worn", "torn"]
        for text in ("torn", "worn"):
            with pytest.raises(ReplicaError, match=text):
                recipe.step()
        step = recipe.step()
        assert (step.batch, step.loss) == (batch, other.step().loss)
    assert recipe.digest() == other.digest()


def test_evaluate_counts_what_is_right(tmp_path: Path) -> None:
    """Accuracy is the share of samples that are right. Spec: R8.4, R14.2."""
    write_data(tmp_path)
    recipe = FashionLeNet(Options(data=str(tmp_path), batch=4))
    images, labels = recipe.test.batch(torch.arange(10))
    right = (recipe.trainer.predict(images).argmax(1) == labels).double()
    assert recipe.evaluate() == right.mean()
    assert recipe.evaluate(3) == right[:3].mean()
    assert recipe.evaluate(99) == recipe.evaluate()
