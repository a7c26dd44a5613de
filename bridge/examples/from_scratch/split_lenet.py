"""LeNet from the same raw parameters, split by layers and inside layers."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from bridge.examples.from_scratch.raw_lenet import sgd, summed_loss
from bridge.parallel import (
    ChannelParallelConv2d,
    ColumnParallelLinear,
    Pipeline,
    RowParallelLinear,
)

MICRO_BATCHES = 4


def undivided(params: Sequence[torch.Tensor]) -> nn.Module:
    """Make the whole net."""
    return nn.Sequential(*_blocks(*_layers(params)))


def by_layers(params: Sequence[torch.Tensor], devices: Sequence[str | torch.device]) -> nn.Module:
    """Split it into stages, one per device, of which there are four at most."""
    blocks = _blocks(*_layers(params))
    count = min(len(devices), len(blocks))
    bounds = pairwise(len(blocks) * stage // count for stage in range(count + 1))
    stages = [nn.Sequential(*blocks[start:end]) for start, end in bounds]
    return Pipeline(stages, devices[:count], MICRO_BATCHES)


def inside_layers(
    params: Sequence[torch.Tensor], devices: Sequence[str | torch.device]
) -> nn.Module:
    """Split each layer, into one part per device, but no more than the first has channels.

    The last layer takes its inputs in parts, as the one before it leaves its outputs.
    """
    conv1, conv2, fc1, fc2 = _layers(params)
    places = devices[: conv1.out_channels]
    blocks = _blocks(
        ChannelParallelConv2d(conv1, places),
        ChannelParallelConv2d(conv2, places),
        ColumnParallelLinear(fc1, places),
        RowParallelLinear(fc2, places),
    )
    return nn.Sequential(*blocks)


def train_net(net: nn.Module, images: torch.Tensor, labels: torch.Tensor, lr: float) -> float:
    """Update a net from one batch, and return the mean loss; the summed gradients stay."""
    net.zero_grad(set_to_none=True)
    loss = summed_loss(net(images), labels)
    loss.backward()  # type: ignore[no-untyped-call]
    sgd(list(net.parameters()), lr, len(labels))
    return loss.item() / len(labels)


def _blocks(
    conv1: nn.Module, conv2: nn.Module, fc1: nn.Module, fc2: nn.Module
) -> list[nn.Sequential]:
    """Put what has no parameters between the layers."""
    return [
        nn.Sequential(conv1, nn.ReLU(), nn.AvgPool2d(2)),
        nn.Sequential(conv2, nn.ReLU(), nn.AvgPool2d(2), nn.Flatten()),
        nn.Sequential(fc1, nn.ReLU()),
        nn.Sequential(fc2),
    ]


def _layers(params: Sequence[torch.Tensor]) -> tuple[nn.Conv2d, nn.Conv2d, nn.Linear, nn.Linear]:
    """Make layers of raw parameters."""
    layers = nn.Conv2d(1, 20, 3), nn.Conv2d(20, 50, 5), nn.Linear(800, 128), nn.Linear(128, 10)
    own = nn.Sequential(*layers).to(params[0].dtype)
    own.load_state_dict(dict(zip(own.state_dict(), params, strict=True)))
    return layers
