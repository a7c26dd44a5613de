"""A training run that both languages take from one file."""

from pathlib import Path

import pytest
from torch.nn import functional
from torch.optim import lr_scheduler

import bridge
from bridge.data import Loader
from bridge.models import DropoutNet
from bridge.optim import create
from tests.python.spec.checkpoints import written
from tests.python.spec.vectors import Case, assert_close, cases, tensor

RELATIVE = 1e-12


@cases("training_checkpoint")
def test_the_run_goes_on_as_the_unbroken(case: Case, tmp_path: Path) -> None:
    """Losses and parameters, in mid-epoch and between two updates. Spec: R28.5."""
    data = tensor(case["inputs"]), tensor(case["targets"], "int64")
    loader = Loader(data, 6, seed=2)
    trainer = bridge.Trainer(
        DropoutNet().double(),
        lambda parameters: create("adam", parameters, amsgrad=True),
        functional.cross_entropy,
        ["cpu"] * 2,
        accumulate=2,
        scheduler=lambda own: lr_scheduler.StepLR(own, 2, gamma=0.5),
    )
    trainer.load(written(case, tmp_path), loader)
    losses = [trainer.step(*batch) for batch in loader]
    assert losses == pytest.approx(case["losses"], rel=RELATIVE)
    state = trainer.state_dict()
    assert list(state) == list(case["state"])
    for name, expected in case["state"].items():
        assert_close(state[name], tensor(expected), RELATIVE)
