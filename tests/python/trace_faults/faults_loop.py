"""Faults of loops: gradients, losses, replicas, learning rates."""

# mypy: disable-error-code="operator,union-attr"
# ruff: noqa: ARG002, D102 - a fault is told by its class, and takes what the method does

from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import clip_grad

from tests.python.trace_faults.bed import Loop, Replicated
from tests.python.trace_faults.models import ConvNet


class Clipped(Loop):
    """A healthy loop that clips by norm."""

    def clip(self, model: nn.Module) -> bool:
        clip_grad.clip_grad_norm_(model.parameters(), 0.1)
        return True


class Scheduled(Loop):
    """A healthy loop whose learning rate decays."""

    def schedule(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        optimizer.param_groups[0]["lr"] *= 0.5


class NeverCleared(Loop):
    """The gradients of all steps add up."""

    says, at = "gradients never cleared", (1, "backward", "fc1.weight")

    def clear(self, optimizer: torch.optim.Optimizer) -> None: ...


class Stale(Loop):
    """From the second step on the gradients are those of the step before."""

    says, at = "stale gradients", (1, "backward", "fc1.weight")

    def gradients(self, model: nn.Module, step: int) -> None:
        own = [parameter.grad for parameter in model.parameters()]
        for parameter, old in zip(model.parameters(), getattr(self, "old", own), strict=True):
            parameter.grad = old
        self.old = own


class Ascent(Loop):
    """The gradients have the other sign."""

    says, at = "sign of the gradients", (0, "backward", "fc1.weight")

    def gradients(self, model: nn.Module, step: int) -> None:
        for parameter in model.parameters():
            parameter.grad = -parameter.grad if parameter.grad is not None else None


class GradientsOfBatch(Loop):
    """The gradients are multiplied by the batch size."""

    says, at = "gradients scaled by the batch size", (0, "backward", "fc1.weight")

    def gradients(self, model: nn.Module, step: int) -> None:
        for parameter in model.parameters():
            parameter.grad = parameter.grad * self.batch if parameter.grad is not None else None


class SummedLoss(Loop):
    """The loss is a sum where it should be a mean."""

    says, at = "loss summed, not averaged", (0, "loss", "loss")

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(outputs, targets, reduction="sum")


class NegativeLoss(Loop):
    """The loss has the other sign."""

    says, at = "sign of the loss", (0, "loss", "loss")

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return -functional.cross_entropy(outputs, targets)


class Whole(Loop):
    """A healthy loop whose tensors are kept."""

    full = "*"


class SoftmaxTwice(Whole):
    """Probabilities go into a loss that takes logits."""

    says, at = "wrong loss", (0, "loss", "loss")

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(outputs.softmax(1), targets)


class Detached(Loop):
    """The first layer gets no gradient."""

    says, at = "no gradient", (0, "backward", "fc1.weight")

    def gradients(self, model: nn.Module, step: int) -> None:
        for parameter in list(model.parameters())[:2]:
            parameter.grad = None


class ClippedByValue(Clipped):
    """The gradients are clipped by value."""

    says, at = "clipped by value", (0, "clip", "fc1.weight")

    def clip(self, model: nn.Module) -> bool:
        clip_grad.clip_grad_value_(model.parameters(), 0.01)
        return True


class ClippedOneByOne(Clipped):
    """Each gradient is clipped by its own norm."""

    says, at = "clipped one by one", (0, "clip", "fc1.weight")

    def clip(self, model: nn.Module) -> bool:
        for parameter in model.parameters():
            clip_grad.clip_grad_norm_([parameter], 0.1)
        return True


class ClippedElsewhere(Clipped):
    """The gradients are clipped at another norm."""

    says, at = "clipped at another norm", (0, "clip", "fc1.weight")

    def clip(self, model: nn.Module) -> bool:
        clip_grad.clip_grad_norm_(model.parameters(), 0.2)
        return True


class SumOfReplicas(Replicated):
    """The gradients of the replicas are twice what they should be."""

    says, at = "gradients scaled by the replica count", (0, "reduce", "fc1.weight")

    def average(self, replicas: list[nn.Module], **options: Any) -> None:  # noqa: ANN401
        super().average(replicas, **options)
        for parameter in replicas[0].parameters():
            if parameter.grad is not None:
                parameter.grad *= len(replicas)


class DroppedShard(Replicated):
    """The gradients of the second replica are lost."""

    says, at = "dropped shard", (0, "reduce", "fc1.weight")

    def average(self, replicas: list[nn.Module], **options: Any) -> None:  # noqa: ANN401
        replicas[1].zero_grad(set_to_none=True)
        super().average(replicas, **options)


class MeanOfMeans(Replicated):
    """Each shard counts the same, though they are uneven."""

    says, at = "mean of means", (0, "reduce", "fc1.weight")

    def average(self, replicas: list[nn.Module], **options: Any) -> None:  # noqa: ANN401
        for replica, share in zip(replicas, (5 / 9, 4 / 9), strict=True):
            for parameter in replica.parameters():
                if parameter.grad is not None:
                    parameter.grad *= 0.5 / share
        super().average(replicas, **options)


class LostResync(Replicated):
    """The second replica keeps its old parameters."""

    says, at = "replica not resynced", (0, "resync", "fc1.weight")

    def resync(self, replicas: list[nn.Module], *arguments: Any, **options: Any) -> None: ...  # noqa: ANN401


class ReplicatedConvNet(Replicated):
    """A healthy loop on two replicas, whose model has buffers."""

    net = ConvNet


class LostBuffers(ReplicatedConvNet):
    """The second replica keeps its own buffers."""

    says, at = "buffer not resynced", (0, "resync", "norm.running_mean")

    def resync(self, replicas: list[nn.Module], *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        super().resync(replicas, "each")


class LateSchedule(Scheduled):
    """The learning rate decays a step too late."""

    says, at = "scheduler off by one", (0, "step", "optimizer0")

    def schedule(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        if step:
            super().schedule(optimizer, step)


class NoSchedule(Scheduled):
    """The learning rate never decays."""

    says, at = "scheduler not stepped", (0, "step", "optimizer0")

    def schedule(self, optimizer: torch.optim.Optimizer, step: int) -> None: ...


class OtherRate(Loop):
    """The learning rate is 0.1 % off."""

    says, at = "learning-rate ratio", (0, "init", "optimizer0")
    options: ClassVar[dict[str, Any]] = {"lr": 0.05005}


class Failing(Loop):
    """The second step throws."""

    says, at = "exception on one side", (1, "backward", "fc1.weight")

    def gradients(self, model: nn.Module, step: int) -> None:
        if step:
            message = "no kernel image"
            raise RuntimeError(message)


class NotANumber(Loop):
    """A gradient is not a number."""

    says, at = "not finite", (1, "backward", "fc2.weight")

    def gradients(self, model: nn.Module, step: int) -> None:
        if step and model.fc2.weight.grad is not None:
            model.fc2.weight.grad[0, 0] = float("nan")
