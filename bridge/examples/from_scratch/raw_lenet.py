"""LeNet and its data-parallel training from nothing but tensors: no module, no optimizer."""

import math
from collections.abc import Sequence

import torch
from torch.nn import functional

from bridge.parallel import scatter

SHAPES = {"conv1": (20, 1, 3, 3), "conv2": (50, 20, 5, 5), "fc1": (128, 800), "fc2": (10, 128)}
"""The weights of the layers; a bias has the first size."""

NAMES = [f"{layer}.{part}" for layer in SHAPES for part in ("weight", "bias")]
"""The parameters, in order, as ``bridge.models.LeNet`` names them."""

Device = str | torch.device


def draw_params(seed: int, dtype: torch.dtype) -> list[torch.Tensor]:
    """Draw weights as He et al. 2015 do, so that values keep their size; biases are 0."""
    draw, params = torch.Generator().manual_seed(seed), []
    for shape in SHAPES.values():
        deviation = math.sqrt(2 / math.prod(shape[1:]))
        params += [torch.randn(shape, generator=draw) * deviation, torch.zeros(shape[0])]
    return [param.to(dtype) for param in params]


def lenet(images: torch.Tensor, params: Sequence[torch.Tensor]) -> torch.Tensor:
    """Classify images ``(N, 1, 28, 28)`` by logits ``(N, 10)``."""
    w1, b1, w2, b2, w3, b3, w4, b4 = params
    x = functional.avg_pool2d(functional.relu(functional.conv2d(images, w1, b1)), 2)
    x = functional.avg_pool2d(functional.relu(functional.conv2d(x, w2, b2)), 2)
    x = functional.relu(functional.linear(x.flatten(1), w3, b3))
    return functional.linear(x, w4, b4)


def summed_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Sum the cross entropy over the samples."""
    return functional.cross_entropy(logits, labels, reduction="sum")


def get_params(params: Sequence[torch.Tensor], device: Device) -> list[torch.Tensor]:
    """Copy parameters to a device, also where they are there already, and track gradients."""
    return [param.detach().to(device, copy=True).requires_grad_() for param in params]


def allreduce(data: Sequence[torch.Tensor]) -> None:
    """Add the tensors of all devices, in their order, and put the sum in the place of each."""
    for other in data[1:]:
        data[0].add_(other.to(data[0].device))
    for other in data[1:]:
        other.copy_(data[0])


def split_batch(
    images: torch.Tensor, labels: torch.Tensor, devices: Sequence[Device]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Split a batch: one shard per device, fewer where there are fewer samples."""
    return scatter((images, labels), devices)


def train_batch(
    images: torch.Tensor,
    labels: torch.Tensor,
    device_params: Sequence[Sequence[torch.Tensor]],
    devices: Sequence[Device],
    lr: float,
) -> float:
    """Update the parameters of every device from one batch, and return the mean loss.

    The gradients, summed over the whole batch, stay on every device until the next one.
    """
    for params in device_params:
        _clear(params)
    shards = zip(split_batch(images, labels, devices), device_params, strict=False)
    losses = [summed_loss(lenet(shard, params), targets) for (shard, targets), params in shards]
    for loss in losses:
        loss.backward()  # type: ignore[no-untyped-call]
    for data in zip(*map(gradients, device_params), strict=True):
        allreduce(data)
    for params in device_params:
        sgd(params, lr, len(labels))
    return sum(loss.item() for loss in losses) / len(labels)


def _clear(params: Sequence[torch.Tensor]) -> None:
    """Set gradients to 0, which is what a device without samples adds."""
    for param in params:
        param.grad = torch.zeros_like(param)


def gradients(params: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """List the gradients."""
    return [param.grad for param in params if param.grad is not None]


def sgd(params: Sequence[torch.Tensor], lr: float, batch_size: int) -> None:
    """Step down the gradient of the mean: the summed one, divided by the batch."""
    with torch.no_grad():
        for param, gradient in zip(params, gradients(params), strict=True):
            param.sub_(lr * gradient / batch_size)
