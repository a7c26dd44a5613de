"""LeNet from raw tensors, split in three ways: by data, by layers, inside layers."""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

import torch
from torch import nn

from bridge.examples.example import Result, Setting
from bridge.examples.from_scratch.images import Batch, batches, read
from bridge.examples.from_scratch.raw_lenet import (
    NAMES,
    allreduce,
    draw_params,
    get_params,
    gradients,
    lenet,
    split_batch,
    train_batch,
)
from bridge.examples.from_scratch.split_lenet import (
    by_layers,
    inside_layers,
    train_net,
    undivided,
)
from bridge.parallel import whole_state

RATE = 0.03


def run(setting: Setting, say: Callable[[str], None]) -> Result:
    """Train LeNet split by data, by layers and inside layers, and undivided, on the same batches.

    Args:
        setting: what to run; there are as many parts as replicas, or as a net of this size has.
        say: takes progress, line by line.

    Returns:
        The losses and the state of the replicas, their accuracy, the last loss of each way, and how
        far its first gradients are from those of the undivided net, as a share of the largest.

    Spec: R23.2
    """
    data, test = read(setting, say)
    params, devices = draw_params(setting.seed, setting.torch_dtype), ["cpu"] * setting.replicas
    device_params = [get_params(params, device) for device in devices]
    nets = {
        "by layers": by_layers(params, devices),
        "inside layers": inside_layers(params, devices),
    }
    nets["undivided"] = undivided(params)
    losses, last = [], {}
    apart: dict[str, float] = {}
    for batch in islice(batches(data, setting.seed), setting.steps):
        losses.append(train_batch(*batch, device_params, devices, RATE))
        last = {way: train_net(net, *batch, RATE) for way, net in nets.items()}
        apart = apart or _differences(device_params[0], nets)
        say(f"step {len(losses)} of {setting.steps}: loss {losses[-1]:.4f}")
    numbers = {
        "first loss": losses[0],
        "last loss": losses[-1],
        **{f"last loss, {way}": loss for way, loss in last.items()},
        "accuracy": _accuracy(device_params[0], test),
        **{f"difference, {way}": share for way, share in apart.items()},
    }
    state = [param.detach() for param in device_params[0]]
    return Result(losses, numbers, dict(zip(NAMES, state, strict=True)))


def _differences(params: Sequence[torch.Tensor], nets: Mapping[str, nn.Module]) -> dict[str, float]:
    """Measure how far the gradients of each way are from the undivided net's at most."""
    found = {"by data": gradients(params)}
    found |= {way: list(whole_state(net, gradients=True).values()) for way, net in nets.items()}
    expected = found.pop("undivided")
    largest = max(gradient.abs().max().item() for gradient in expected)
    return {
        way: max((a - b).abs().max().item() for a, b in zip(own, expected, strict=True)) / largest
        for way, own in found.items()
    }


def _accuracy(params: Sequence[torch.Tensor], test: Batch) -> float:
    """Count what is classified right, as a share."""
    with torch.no_grad():
        return (lenet(test[0], params).argmax(1) == test[1]).double().mean().item()


__all__ = ["allreduce", "get_params", "lenet", "run", "split_batch", "train_batch"]
