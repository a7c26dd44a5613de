"""Trainers for tests, and what there is to compare of them."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from bridge import LinearScaling, SyncBatchNorm, Trainer
from tests.python.spec.vectors import Case, tensor

Snapshot = list[Any]


def loss_of(kind: str, reduction: str) -> Callable[[torch.Tensor, torch.Tensor], Any]:
    """Make a loss of the training vectors, whose form the file describes."""

    def loss(outputs: torch.Tensor, targets: torch.Tensor) -> Any:  # noqa: ANN401 - with a count or without
        total, count = _sum_and_count(kind, outputs, targets)
        if reduction == "count":
            return total, count
        return total if reduction == "sum" else total / count

    return loss


def _sum_and_count(kind: str, outputs: torch.Tensor, targets: torch.Tensor) -> tuple[Any, Any]:
    """Return a sum and what it counts."""
    if kind == "tokens":
        total = functional.cross_entropy(outputs, targets, ignore_index=-1, reduction="sum")
        return total, (targets != -1).sum()
    if kind == "weighted":
        weight = outputs.new_tensor([0.5, 1, 2])
        total = functional.cross_entropy(outputs, targets, weight=weight, reduction="sum")
        return total, weight[targets].sum()
    if kind == "masked":
        wanted, mask = targets.chunk(2, dim=1)
        return ((outputs - wanted).square() * mask).sum(), mask.sum()
    return (outputs - targets).square().sum(), targets.numel()


def trainer_of(case: Case) -> Trainer:
    """Make the trainer of a case of the training vectors."""
    layers: dict[str, nn.Module] = {"fc1": nn.Linear(2, 3)}
    if "norm.weight" in case["state"]:
        layers["norm"] = SyncBatchNorm(3)
    layers |= {"relu": nn.ReLU(), "fc2": nn.Linear(3, 3)}
    model = nn.Sequential(OrderedDict(layers)).double()
    model.load_state_dict({name: torch.tensor(value) for name, value in case["state"].items()})
    options = dict(case["options"])
    if "scaling" in options:
        options["scaling"] = LinearScaling(**options["scaling"])
    return Trainer(
        model,
        lambda parameters: torch.optim.SGD(parameters, lr=case["lr"], momentum=case["momentum"]),
        loss_of(case["loss"], options.get("reduction", "mean")),
        ["cpu"] * case["replicas"],
        **options,
    )


def batch_of(batch: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """Read a batch: classes are whole numbers."""
    targets = torch.tensor(batch["targets"])
    return tensor(batch["inputs"]), targets if targets.dtype == torch.int64 else targets.double()


def everything(trainer: Trainer) -> Snapshot:
    """Copy all that a failing step must leave as it was."""
    tensors = [
        value for replica in trainer.replicas
        for value in (*replica.state_dict().values(), *(p.grad for p in replica.parameters()))
    ]  # fmt: skip
    stateful: list[Any] = [*trainer.optimizers, *trainer.schedulers]
    snapshot: Snapshot = copied([
        *tensors,
        *[item.state_dict() for item in stateful],
        torch.get_rng_state(),
        trainer._step.states.snapshot(),  # noqa: SLF001
        trainer._step.accumulator.state,  # noqa: SLF001
        trainer.updates,
    ])  # fmt: skip
    return snapshot


def copied(value: Any) -> Any:  # noqa: ANN401 - any tree
    """Copy a tree, its tensors included."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: copied(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [copied(part) for part in value]
    return value


def equal(one: Any, other: Any) -> bool:  # noqa: ANN401 - any tree
    """Tell whether two copies are the same, bit for bit."""
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and torch.equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


def largest_difference(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> float:
    """Find the largest difference between two lists of tensors."""
    pairs = zip(one, other, strict=True)
    return max(float((a.detach() - b.detach()).abs().max()) for a, b in pairs)
