"""Training loops that can be given one fault: every part of them is a method."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import torch
from torch import nn
from torch.nn import functional

import bridge
from bridge.parallel import trainer_step
from bridge.parallel.trainer import Trainer
from bridge.trace import Recorder
from tests.python.trace_faults.models import SHAPES, Attention, Mlp

Batch = tuple[torch.Tensor, torch.Tensor]


class Loop:
    """A healthy loop; a fault overrides a method.

    ``says`` is the name that the diagnosis must give a fault, and ``at`` the step, the phase and
    the name of the record where it must be found.
    """

    says: ClassVar[str | None] = None
    at: ClassVar[tuple[int, str, str]]
    net: ClassVar[type[nn.Module]] = Mlp
    dtype: ClassVar[torch.dtype] = torch.float64
    kind: ClassVar[str] = "SGD"
    options: ClassVar[dict[str, Any]] = {"lr": 0.05}
    steps: ClassVar[int] = 3
    batch: ClassVar[int] = 8
    full: ClassVar[str | None] = None
    seed: ClassVar[int] = 5

    def model(self) -> nn.Module:
        """Make the model."""
        torch.manual_seed(self.seed)
        return self.net().to(self.dtype)

    def data(self) -> list[Batch]:
        """Make the batches."""
        generator = torch.Generator().manual_seed(2)
        kind = next(base for base in SHAPES if issubclass(self.net, base))
        shape = (self.batch, *SHAPES[kind])
        batches = []
        for _ in range(self.steps + 1):
            if kind is Attention:
                inputs = torch.randint(0, 11, shape, generator=generator)
            else:
                inputs = torch.randn(shape, dtype=self.dtype, generator=generator)
            batches.append((inputs, torch.randint(0, 4, (self.batch,), generator=generator)))
        return batches

    def batches(self) -> list[Batch]:
        """Choose what the steps take."""
        return self.data()[: self.steps]

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Make the optimizer."""
        made: torch.optim.Optimizer = getattr(torch.optim, self.kind)(
            model.parameters(), **self.options
        )
        return made

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Compute the loss."""
        return functional.cross_entropy(outputs, targets)

    def clear(self, optimizer: torch.optim.Optimizer) -> None:
        """Clear the gradients."""
        optimizer.zero_grad(set_to_none=True)

    def gradients(self, model: nn.Module, step: int) -> None:
        """Change the gradients after the backward."""

    def clip(self, model: nn.Module) -> bool:  # noqa: ARG002 - for loops that do
        """Clip the gradients; tell whether that is done."""
        return False

    def update(self, optimizer: torch.optim.Optimizer, model: nn.Module) -> None:  # noqa: ARG002
        """Step the optimizer."""
        optimizer.step()

    def schedule(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        """Change the learning rate."""

    def run(self, path: Path, model: nn.Module | None = None) -> None:
        """Train, recorded."""
        model = self.model() if model is None else model
        optimizer = self.optimizer(model)
        with bridge.trace(path, model, optimizer, full=self.full) as trace:
            for step, batch in enumerate(self.batches()):
                self.step(trace, model, optimizer, batch, step)

    def step(
        self,
        trace: Recorder,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        batch: Batch,
        step: int,
    ) -> None:
        """Do one step."""
        inputs, targets = batch
        trace.inputs(inputs, targets)
        loss = self.loss(model(inputs), targets)
        trace.loss(loss)
        self.clear(optimizer)
        loss.backward()  # type: ignore[no-untyped-call]
        self.gradients(model, step)
        trace.gradients()
        if self.clip(model):
            trace.gradients("clip")
        self.update(optimizer, model)
        self.schedule(optimizer, step)
        trace.step()


class Replicated(Loop):
    """A healthy loop on two replicas, whose shards are uneven."""

    batch = 9
    options: ClassVar[dict[str, Any]] = {"lr": 0.05, "momentum": 0.9}

    def average(self, replicas: list[nn.Module], **options: Any) -> None:  # noqa: ANN401
        """Reduce the gradients, which have the weights of their shards."""
        bridge.average(replicas, **options)

    def resync(self, replicas: list[nn.Module], *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        """Make the replicas equal."""
        bridge.resync(replicas, *arguments, **options)

    def run(self, path: Path, model: nn.Module | None = None) -> None:
        """Train, recorded."""
        model = self.model() if model is None else model
        with (
            patch.object(trainer_step, "average", self.average),
            patch.object(import_module("bridge.parallel.step"), "resync", self.resync),
        ):
            trainer = Trainer(model, self.optimizer(model), self.loss, ["cpu", "cpu"])
            with bridge.trace(path, trainer, full=self.full):
                for inputs, targets in self.batches():
                    trainer.step(inputs, targets)


def faults(base: type[Loop] = Loop) -> Iterator[type[Loop]]:
    """List the loops with a fault."""
    for loop in base.__subclasses__():
        if loop.says is not None:
            yield loop
        yield from faults(loop)


def reference(loop: type[Loop]) -> type[Loop]:
    """Return the healthy loop that a faulty one is a copy of."""
    return next(base for base in loop.__mro__ if issubclass(base, Loop) and base.says is None)
