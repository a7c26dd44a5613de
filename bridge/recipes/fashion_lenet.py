"""LeNet on Fashion-MNIST."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path

import torch
from torch.nn import functional

from bridge.data import FashionMnist, Loader
from bridge.models import LeNet
from bridge.optim import create
from bridge.parallel import Trainer
from bridge.parallel.devices import as_devices
from bridge.parity.digest import digest
from bridge.recipes.options import DTYPES, Options

EVALUATION_BATCH = 500


@dataclass(frozen=True)
class StepResult:
    """What one step of a job left: its number from 1, the loss, the batch and the time."""

    number: int
    loss: float
    samples: int
    batch: str
    seconds: float


class FashionLeNet:
    """Trains LeNet on Fashion-MNIST, one step at a call.

    Args:
        options: what to train, and how long.

    Raises:
        FileNotFoundError: the data set is missing; the message says how to get it.
        IdxError: a damaged file.

    Spec: R14.2, R14.3, R14.4
    """

    title = "LeNet on Fashion-MNIST"

    def __init__(self, options: Options) -> None:
        """Read the data, seed and build the model, and replicate it."""
        torch.set_num_threads(options.threads)
        devices = as_devices("options", options.devices)
        dtype = DTYPES[options.dtype]
        folder = None if options.data is None else Path(options.data)
        self.options = options
        self.train = FashionMnist(folder, train=True, dtype=dtype)
        self.test = FashionMnist(folder, train=False, dtype=dtype)
        torch.manual_seed(options.seed)
        model = LeNet().to(device=devices[0], dtype=dtype)
        optimizer = create(options.optimizer, model.parameters(), **options.optimizer_options)
        self.trainer = Trainer(model, optimizer, functional.cross_entropy, devices)
        self._loader = Loader(self.train, options.batch, seed=options.seed)
        self._batches = self._epochs()

    @property
    def steps_per_epoch(self) -> int:
        """Count the steps of an epoch; the last may have a smaller batch."""
        return len(self._loader)

    @property
    def planned_steps(self) -> int:
        """Count the steps of the whole job."""
        whole = self.options.epochs * self.steps_per_epoch
        return whole if self.options.steps is None else min(whole, self.options.steps)

    def step(self) -> StepResult:
        """Train on the next batch; after a failure the next call takes the same one."""
        start = time.perf_counter()
        state = self._loader.state_dict()
        try:
            images, labels = next(self._batches)
            loss = self.trainer.step(images, labels)
        except BaseException:
            self._loader.load_state_dict(state)
            self._batches = self._epochs()
            raise
        seconds = time.perf_counter() - start
        batch = digest([("images", images), ("labels", labels)])
        return StepResult(self.trainer.steps, loss, len(labels), batch, seconds)

    def evaluate(self, count: int | None = None) -> float:
        """Measure the accuracy on the first ``count`` test samples, or on all."""
        count = len(self.test) if count is None else min(count, len(self.test))
        starts = range(0, count, EVALUATION_BATCH)
        rows = (torch.arange(s, min(s + EVALUATION_BATCH, count)) for s in starts)
        return self.trainer.evaluate((self.test.batch(row) for row in rows), accuracy)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state of the job, in place of the old file as a whole.

        Args:
            path: the file, which either language reads.

        Raises:
            OSError: the file cannot be written; the old one is whole.

        Spec: R28.4
        """
        self.trainer.save(path, self._loader)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on where the job was that either language saved.

        Args:
            path: the file.

        Raises:
            CheckpointError: no such file of this version, or one of another job; nothing changes.
            FileNotFoundError: no such file.

        Spec: R28.2
        """
        self.trainer.load(path, self._loader)
        self._batches = self._epochs()

    def digest(self) -> str:
        """Digest the model's state."""
        return digest(self.trainer.state_dict().items())

    def _epochs(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Give the batches from where the loader is, epoch after epoch."""
        return chain.from_iterable(repeat(self._loader))


def accuracy(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Measure the share of samples whose largest output is at the target."""
    return (outputs.argmax(1) == targets).double().mean()
