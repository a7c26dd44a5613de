"""Training loops, as tutorials of PyTorch have them; each has a C# port of its name."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.clip_grad import clip_grad_norm_
from torch.optim import SGD, Adam, AdamW
from torch.optim.lr_scheduler import StepLR

import bridge
from tests.mutants.reference.mlp import MLP
from tests.mutants.reference.models import MODELS
from tests.mutants.reference.transformer import Transformer


class Loop(Protocol):
    """A training loop: what it trains, and one step of it."""

    replicas: list[nn.Module]

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> float:
        """Train on one batch and return its loss."""


class PlainLoop:
    """The loop of every tutorial: SGD with momentum, or evaluation alone."""

    def __init__(self, model: str, loss: str = "cross_entropy", mode: str = "train") -> None:
        """Make the model and the optimizer."""
        self.model = MODELS[model]().double().train(mode == "train")
        self.replicas = [self.model]
        self.loss = getattr(functional, loss)
        self.optimizer = SGD(self.model.parameters(), lr=0.05, momentum=0.9)

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> float:
        """Train on one batch and return its loss."""
        self.optimizer.zero_grad()
        loss = self.loss(self.model(inputs), targets)
        if self.model.training:
            loss.backward()
            self.optimizer.step()
        return float(loss.item())


class ScratchLoop:
    """Gradient descent without an optimizer."""

    def __init__(self) -> None:
        """Make the model."""
        self.replicas = [MLP().double()]

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> float:
        """Train on one batch and return its loss."""
        loss = functional.cross_entropy(self.replicas[0](inputs), targets)
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            for parameter in self.replicas[0].parameters():
                if parameter.grad is not None:
                    parameter.sub_(0.1 * parameter.grad)
                    parameter.grad = None
        return loss.item()


class SgdLoop:
    """The MLP, trained by SGD with momentum and weight decay."""

    def __init__(self) -> None:
        """Make the model and the optimizer."""
        self.replicas = [MLP().double()]
        parameters = self.replicas[0].parameters()
        self.optimizer: torch.optim.Optimizer = SGD(
            parameters, lr=0.1, momentum=0.9, weight_decay=0.01
        )

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> float:
        """Train on one batch and return its loss."""
        self.optimizer.zero_grad()
        loss = functional.cross_entropy(self.replicas[0](inputs), targets)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.item()


class AdamLoop(SgdLoop):
    """The MLP, trained by Adam."""

    def __init__(self) -> None:
        """Make the model and the optimizer."""
        super().__init__()
        parameters = self.replicas[0].parameters()
        self.optimizer = Adam(parameters, lr=0.01, betas=(0.9, 0.99), weight_decay=0.01)


class ScheduledLoop(SgdLoop):
    """The MLP in epochs of two batches; each halves the learning rate."""

    def __init__(self) -> None:
        """Make the model, the optimizer and the scheduler."""
        super().__init__()
        self.optimizer = SGD(self.replicas[0].parameters(), lr=0.1)
        self.scheduler = StepLR(self.optimizer, step_size=1, gamma=0.5)
        self.batches = 0

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> float:
        """Train on one batch and return its loss."""
        loss = super().step(inputs, targets)
        self.batches += 1
        if self.batches % 2 == 0:
            self.scheduler.step()
        return loss


class AccumulatingLoop:
    """The MLP; the gradients of a batch add up over parts of at most four samples."""

    def __init__(self) -> None:
        """Make the model and the optimizer."""
        self.replicas = [MLP().double()]
        self.optimizer = SGD(self.replicas[0].parameters(), lr=0.1)

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> float:
        """Train on one batch and return its loss."""
        self.optimizer.zero_grad()
        total = 0.0
        for x, y in zip(torch.split(inputs, 4), torch.split(targets, 4), strict=True):
            loss = functional.cross_entropy(self.replicas[0](x), y) * (len(y) / len(targets))
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        self.optimizer.step()
        return total


class ReplicaLoop:
    """A model on two replicas, verb by verb, with the gradients' norm clipped if one is given."""

    def __init__(self, model: str, norm: float | None = None) -> None:
        """Make the replicas and the optimizer."""
        self.replicas = list(bridge.replicate(MODELS[model]().double(), ["cpu", "cpu"]))
        self.optimizer = SGD(self.replicas[0].parameters(), lr=0.1, momentum=0.9)
        self.norm = norm

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> float:
        """Train on one batch and return its loss."""
        for replica in self.replicas:
            replica.zero_grad()
        shards = bridge.scatter((inputs, targets), ["cpu", "cpu"])
        counts = [len(y) for _, y in shards]
        losses = bridge.parallel_apply([partial(_pass, own) for own in self.replicas], shards)
        bridge.average(self.replicas, counts)
        if self.norm is not None:
            clip_grad_norm_(self.replicas[0].parameters(), self.norm)
        bridge.step(self.replicas, self.optimizer)
        weighted = zip(losses, counts, strict=True)
        return float(sum(loss * count for loss, count in weighted) / sum(counts))


class TokenLoop:
    """The transformer, trained by AdamW to tell the next token; token 0 is padding."""

    def __init__(self) -> None:
        """Make the model and the optimizer."""
        self.replicas = [Transformer().double()]
        self.optimizer = AdamW(self.replicas[0].parameters(), lr=0.01, weight_decay=0.1)

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> float:
        """Train on one batch and return its loss."""
        self.optimizer.zero_grad()
        loss = functional.cross_entropy(self.replicas[0](inputs), targets, ignore_index=0)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.item()


def _pass(replica: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> float:
    """Add the gradients of a shard."""
    loss = functional.cross_entropy(replica(inputs), targets)
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.item()


LOOPS: dict[str, Callable[..., Loop]] = {
    loop.__name__: loop
    for loop in (
        PlainLoop,
        ScratchLoop,
        SgdLoop,
        AdamLoop,
        ScheduledLoop,
        AccumulatingLoop,
        ReplicaLoop,
        TokenLoop,
    )
}
