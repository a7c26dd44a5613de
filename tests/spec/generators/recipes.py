"""What a recipe draws and reads: initial weights and batches, from PyTorch's layers and numpy."""

from typing import Any

import numpy as np
import torch
from torch import nn

from tests.spec.generators.values import sha256

Case = dict[str, Any]

TRAIN = 10
OPTIONS: dict[str, Case] = {
    "two epochs in float64": {"seed": 3, "batch": 4, "epochs": 2},
    "steps end it": {"seed": 3, "batch": 4, "epochs": 2, "steps": 4, "replicas": 3},
    "float32, one batch": {"batch": 16, "dtype": "float32", "optimizer": "sgd", "replicas": 1},
}
ABOUT = (
    "LeNet on a data set of 10 training and 10 test images with these options: byte i of the "
    "images is 31 * i modulo 251, label i is i. 'initial' is the digest of its state, 'batches' "
    "those of its steps, 'samples' their sizes."
)


def recipes() -> Case:
    """Prepare the recipe with every set of options."""
    cases = [_case(name, options) for name, options in OPTIONS.items()]
    return {"about": ABOUT, "cases": cases}


def _case(name: str, options: Case) -> Case:
    """Draw the weights and read the batches of all steps."""
    kind = options.get("dtype", "float64")
    size, seed = options["batch"], options.get("seed", 0)
    per_epoch = -(-TRAIN // size)
    planned = min(per_epoch * options.get("epochs", 1), options.get("steps", 10**9))
    samples = [min(size, TRAIN - step % per_epoch * size) for step in range(planned)]
    batches = [_batch(step, per_epoch, size, seed, kind) for step in range(planned)]
    head = {"name": name, "spec": ["R14.2", "R14.3", "R10.4"], "options": options}
    counts = {"steps_per_epoch": per_epoch, "planned_steps": planned, "samples": samples}
    return {**head, **counts, "initial": _initial(seed, kind), "batches": batches, "fused": True}


def _initial(seed: int, kind: str) -> str:
    """Digest the initial weights of LeNet, drawn in float32."""
    torch.manual_seed(seed)
    layers = {
        "conv1": nn.Conv2d(1, 20, 3),
        "conv2": nn.Conv2d(20, 50, 5),
        "fc1": nn.Linear(800, 128),
        "fc2": nn.Linear(128, 10),
    }
    dtype = getattr(torch, kind)
    model = nn.ModuleDict(layers).to(dtype)
    return sha256(model.state_dict().items())


def _batch(step: int, per_epoch: int, size: int, seed: int, kind: str) -> str:
    """Digest the batch of a step."""
    epoch, position = divmod(step, per_epoch)
    order = torch.randperm(TRAIN, generator=torch.Generator().manual_seed(seed + epoch))
    rows = order[position * size : (position + 1) * size].numpy()
    grey = (31 * np.arange(TRAIN * 784) % 251).reshape(TRAIN, 1, 28, 28)[rows].astype(np.float64)
    images = torch.from_numpy(((grey / 255 - 0.2860) / 0.3530).astype(kind))
    return sha256([("images", images), ("labels", torch.from_numpy(rows))])
