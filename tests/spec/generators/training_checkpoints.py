"""The file of a training run, and how the run goes on."""

import tempfile
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from torch.optim import lr_scheduler

import bridge
from bridge.data import Loader
from bridge.models import DropoutNet
from bridge.optim import create
from tests.spec.generators.values import values

Case = dict[str, Any]

ABOUT = (
    "A Trainer of two replicas of DropoutNet in float64 with Adam (amsgrad), StepLR(2, gamma 0.5), "
    "accumulate 2 and cross-entropy was saved to 'file' after 3 batches of a Loader over 'inputs' "
    "and 'targets' (batches of 6, seed 2), in mid-epoch, between two updates. 'losses' and 'state' "
    "are those of the unbroken run in the rest of the epoch, within a share of 1e-12."
)
SAMPLES, BATCH, CUT = 32, 6, 3


def training_checkpoints() -> Case:
    """Train, save on the way, and train on."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randint(-8, 9, (SAMPLES, 8), generator=generator).double() / 4
    targets = torch.randint(0, 4, (SAMPLES,), generator=generator)
    loader = Loader((inputs, targets), BATCH, seed=2)
    torch.manual_seed(3)
    trainer = bridge.Trainer(
        DropoutNet().double(),
        lambda parameters: create("adam", parameters, amsgrad=True),
        functional.cross_entropy,
        ["cpu"] * 2,
        accumulate=2,
        scheduler=lambda own: lr_scheduler.StepLR(own, 2, gamma=0.5),
    )
    batches = iter(loader)
    for _ in range(CUT):
        trainer.step(*next(batches))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.safetensors"
        trainer.save(path, loader)
        content = path.read_bytes()
    losses = [trainer.step(*batch) for batch in batches]
    case = {
        "name": "a file of PyTorch 2.10",
        "spec": ["R28.5"],
        "inputs": values(inputs),
        "targets": values(targets),
        "file": content.hex(),
        "losses": losses,
        "state": {name: values(tensor) for name, tensor in trainer.state_dict().items()},
    }
    return {"about": ABOUT, "cases": [case]}
