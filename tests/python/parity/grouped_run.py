"""Runs with optimizers of two groups, schedulers and loaders of their own; C# has the twins."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.optim import SGD, Optimizer, lr_scheduler

import bridge
from bridge import checkpoint, schedulers
from bridge.data import Loader
from bridge.optim import create, reference
from bridge.parallel.state_dict import load_state_dict

State = dict[str, torch.Tensor]


class GroupedNet(nn.Module):
    """Linear layers 8-16-4 with dropout.

    ``turn`` sees shards of more than two samples alone, and ``spare`` none.
    """

    def __init__(self) -> None:
        """Initialize as PyTorch's layers do, from the default generator."""
        super().__init__()
        self.fc1 = nn.Linear(8, 16)
        self.drop = nn.Dropout(0.5)
        self.turn = nn.Linear(16, 16)
        self.fc2 = nn.Linear(16, 4)
        self.spare = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Classify vectors."""
        hidden = self.drop(functional.relu(self.fc1(x)))
        hidden = functional.relu(self.turn(hidden)) if len(x) > 2 else hidden
        logits: torch.Tensor = self.fc2(hidden)
        return logits


def schedule(name: str, own: Optimizer, *, cyclic: bool) -> Any:  # noqa: ANN401 - a scheduler
    """Make a scheduler by the name of its class; cyclic ones may move momentum or betas too."""
    options: dict[str, dict[str, Any]] = {
        "LambdaLR": {"lr_lambda": lambda epoch: 1.0 / (epoch + 1)},
        "MultiplicativeLR": {"lr_lambda": lambda epoch: 0.5 if epoch % 2 == 0 else 1.75},
        "StepLR": {"step_size": 2, "gamma": 0.5},
        "MultiStepLR": {"milestones": [1, 3, 3, 6], "gamma": 0.7},
        "ConstantLR": {"factor": 0.25, "total_iters": 4},
        "LinearLR": {"start_factor": 0.1, "total_iters": 6},
        "ExponentialLR": {"gamma": 0.9},
        "PolynomialLR": {"total_iters": 9, "power": 2},
        "CosineAnnealingLR": {"T_max": 5, "eta_min": 1e-4},
        "CosineAnnealingWarmRestarts": {"T_0": 2, "T_mult": 2},
        "OneCycleLR": {"max_lr": [0.02, 0.01], "total_steps": 12, "cycle_momentum": cyclic},
        "CyclicLR": {
            "base_lr": 1e-3,
            "max_lr": 1e-2,
            "step_size_up": 3,
            "mode": "triangular2",
            "cycle_momentum": cyclic and (isinstance(own, SGD) or reference() != "1.13"),
        },
        "ReduceLROnPlateau": {"factor": 0.5, "patience": 0, "threshold": 0.02},
    }
    parts = {
        "SequentialLR": ("LinearLR", "CosineAnnealingWarmRestarts"),
        "ChainedScheduler": ("ConstantLR", "ExponentialLR"),
    }
    made = [schedule(part, own, cyclic=cyclic) for part in parts.get(name, ())]
    if name == "SequentialLR":
        return lr_scheduler.SequentialLR(own, made, [4])
    if name == "ChainedScheduler":
        return lr_scheduler.ChainedScheduler(made)
    return getattr(lr_scheduler, name)(own, **options[name])


class GroupedRun:
    """Trains two replicas with an optimizer of two groups and a scheduler."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a run has
        self, optimizer: str, scheduler: str, dtype: str, save: Path, cut: int, load: Path | None
    ) -> None:
        """Make the run, or go on with one."""
        model = GroupedNet().to(getattr(torch, dtype))
        cyclic = optimizer in {"sgd", "adam"}
        own = grouped(optimizer, model)
        stepped = scheduler != "ReduceLROnPlateau"

        def make(made: Optimizer) -> Any:  # noqa: ANN401 - a scheduler
            return schedule(scheduler, made, cyclic=cyclic)

        self.trainer = bridge.Trainer(
            model,
            own,
            functional.cross_entropy,
            ["cpu"] * 2,
            scheduler=make if stepped else None,
        )
        self.plateau = None if stepped else make(own)
        self.loader = loader(dtype)
        self.saving = save, cut
        extra = self.trainer.load(load, self.loader) if load else None
        if extra is not None:
            schedulers.load_state_dict(self.plateau, extra["plateau"])
        self.batches = endless(self.loader)

    def step(self) -> float:
        """Train on the next batch of its loader, save where it is time, and return the loss."""
        loss = self.trainer.step(*next(self.batches))
        if self.plateau is not None:
            self.plateau.step(loss)
        save, cut = self.saving
        if self.trainer.steps == cut:
            plateau = self.plateau
            extra = plateau and {"plateau": schedulers.state_dict(plateau)}
            self.trainer.save(save, self.loader, extra)
        return loss

    @property
    def state(self) -> State:
        """The model's state, and the rates of the groups."""
        return {**self.trainer.state_dict(), "rates": rates(self.trainer.optimizer)}


class ClosureRun:
    """Trains with LBFGS, whose closure no trainer can give, and writes its checkpoint itself."""

    def __init__(
        self, search: str | None, dtype: str, save: Path, cut: int, load: Path | None
    ) -> None:
        """Make the run, or go on with one."""
        self.model = GroupedNet().to(getattr(torch, dtype))
        options = {"lr": 0.25, "max_iter": 4, "line_search_fn": search}
        self.optimizer = create("lbfgs", self.model.parameters(), **options)
        self.scheduler = schedule("LinearLR", self.optimizer, cyclic=False)
        self.loader, self.steps = loader(dtype), 0
        self.saving = save, cut
        if load:
            self._take(checkpoint.read(load))
        self.batches = endless(self.loader)

    def step(self) -> float:
        """Train on the next batch of its loader, save where it is time, and return the loss."""
        inputs, targets = next(self.batches)

        def closure() -> Any:  # noqa: ANN401 - PyTorch's stubs ask for a float
            self.optimizer.zero_grad(set_to_none=True)
            evaluated = functional.cross_entropy(self.model(inputs), targets)
            evaluated.backward()  # type: ignore[no-untyped-call]
            return evaluated

        loss: Any = self.optimizer.step(closure)
        self.scheduler.step()
        self.steps += 1
        save, cut = self.saving
        if self.steps == cut:
            checkpoint.write(self._whole(), save)
        return float(loss.detach())

    @property
    def state(self) -> State:
        """The model's state, and the rate."""
        return {**self.model.state_dict(), "rates": rates(self.optimizer)}

    def _whole(self) -> dict[str, Any]:
        return {
            "model": dict(self.model.state_dict()),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": schedulers.state_dict(self.scheduler),
            "random": torch.get_rng_state(),
            "loader": self.loader.state_dict(),
            "steps": self.steps,
        }

    def _take(self, tree: Any) -> None:  # noqa: ANN401 - a tree
        load_state_dict(self.model, checkpoint.as_state_dict(tree["model"]))
        self.optimizer.load_state_dict(tree["optimizer"])
        schedulers.load_state_dict(self.scheduler, tree["scheduler"])
        self.loader.load_state_dict(tree["loader"])
        torch.set_rng_state(tree["random"])
        self.steps = tree["steps"]


def grouped(name: str, model: GroupedNet) -> Optimizer:
    """Make an optimizer of two groups; the second has a rate of its own."""
    options = {"lr": 0.01, **({"momentum": 0.9} if name in {"sgd", "rmsprop"} else {})}
    first = [*model.fc1.parameters(), *model.spare.parameters()]
    second = [*model.turn.parameters(), *model.fc2.parameters()]
    groups: list[dict[str, Any]] = [{"params": first}, {"params": second, "lr": 0.005}]
    return create(name, groups, **options)


def loader(dtype: str) -> Loader:
    """Make a loader of three batches of 6 samples and one of 4 an epoch."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(22, 8, generator=generator).to(getattr(torch, dtype))
    return Loader((inputs, torch.randint(0, 4, (22,), generator=generator)), 6, seed=2)


def endless(data: Loader) -> Iterator[Any]:
    """Give the batches from where the loader is, epoch after epoch."""
    while True:
        yield from data


def rates(optimizer: Optimizer) -> torch.Tensor:
    """Collect the rates of the groups."""
    return torch.tensor([group["lr"] for group in optimizer.param_groups], dtype=torch.float64)
