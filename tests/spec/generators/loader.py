"""Batches of several epochs, from PyTorch's own loader and draws."""

from typing import Any

import torch
from torch.utils.data import DataLoader

Case = dict[str, Any]
EPOCHS = 3
LOADERS: dict[str, tuple[int, Case]] = {
    "shuffled, the last batch smaller": (10, {"batch_size": 3}),
    "shuffled by another seed": (10, {"batch_size": 3, "seed": 7}),
    "shuffled, the last batch dropped": (10, {"batch_size": 3, "drop_last": True}),
    "shuffled, nothing to drop": (6, {"batch_size": 2, "seed": 1, "drop_last": True}),
    "in the order of the data": (7, {"batch_size": 2, "shuffle": False}),
    "in that order, the last batch dropped": (
        7,
        {"batch_size": 2, "shuffle": False, "drop_last": True},
    ),
    "one sample a batch": (4, {"batch_size": 1, "seed": 2**40}),
    "all samples in a batch": (5, {"batch_size": 5}),
    "fewer samples than a batch": (5, {"batch_size": 8}),
    "one sample": (1, {"batch_size": 1}),
}


def loaders() -> Case:
    """Read the numbers from 0 in batches, epoch after epoch."""
    about = (
        "Loader([0, 1, ... count - 1], **options) gives the batches of 'epochs', one epoch an "
        "iteration."
    )
    cases = []
    for name, (count, options) in LOADERS.items():
        epochs = [_epoch(count, epoch, options) for epoch in range(EPOCHS)]
        given: Case = {"count": count, "options": options}
        cases.append({"name": name, "spec": ["R17.1"], **given, "epochs": epochs})
    return {"about": about, "cases": cases}


def _epoch(count: int, epoch: int, options: Case) -> list[list[int]]:
    """Read one epoch."""
    generator = torch.Generator().manual_seed(options.get("seed", 0) + epoch)
    drawn = torch.randperm(count, generator=generator).tolist()
    indices = drawn if options.get("shuffle", True) else list(range(count))
    loader = DataLoader(
        list(range(count)),
        options["batch_size"],
        sampler=indices,
        drop_last=options.get("drop_last", False),
    )
    return [batch.tolist() for batch in loader]
