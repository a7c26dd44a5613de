"""Schedulers in the trainer."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

from bridge import Trainer
from bridge.schedulers import create
from tests.python.spec.trainers import equal, everything


def test_the_trainer_has_no_metric() -> None:
    """The trainer refuses a scheduler that needs a metric. Spec: R27.5."""
    model = nn.Linear(1, 1)
    plateau: Any = lr_scheduler.ReduceLROnPlateau
    with pytest.raises(ValueError, match="got ReduceLROnPlateau: step it yourself, after evaluate"):
        Trainer(
            model,
            torch.optim.SGD(model.parameters(), lr=0.5),
            nn.functional.mse_loss,
            scheduler=plateau,
        )


FAILING: dict[str, Any] = {
    "the end of a cycle": lambda own: create("OneCycleLR", own, max_lr=0.5, total_steps=2),
    "a function of the user's": lambda own: create(
        "LambdaLR", own, lr_lambda=lambda update: 1 / (3 - update)
    ),
    "a division by zero": lambda own: create("ConstantLR", own, factor=0.0, total_iters=3),
    "a chain, after its first part": lambda own: create(
        "ChainedScheduler",
        own,
        schedulers=[
            {"name": "MultiStepLR", "milestones": [1, 1, 3]},
            {"name": "OneCycleLR", "max_lr": 0.5, "total_steps": 2},
        ],
    ),
    "a sequence, in its second part": lambda own: create(
        "SequentialLR",
        own,
        schedulers=[
            {"name": "ExponentialLR", "gamma": 0.5},
            {"name": "MultiplicativeLR", "lr_lambda": lambda epoch: 1 / (1 - epoch)},
        ],
        milestones=[2],
    ),
}


@pytest.mark.parametrize("failure", FAILING)
def test_a_scheduler_that_fails_is_given_back(failure: str) -> None:
    """It is given back exactly, and so are parameters, rates and momentum. Spec: R27.5."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    loss = nn.functional.mse_loss
    trainer = Trainer(model, optimizer, loss, ["cpu"] * 2, scheduler=FAILING[failure])
    batch = (torch.ones(4, 3), torch.zeros(4, 2))
    trainer.step(*batch)
    trainer.step(*batch)
    before = everything(trainer)
    for _ in range(2):
        with pytest.raises((ValueError, ZeroDivisionError)):
            trainer.step(*batch)
        assert equal(before, everything(trainer))
