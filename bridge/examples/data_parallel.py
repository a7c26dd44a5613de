"""The drop-in module: ResNet-18 in DataParallel, with the loop of one device."""

import copy
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from bridge.examples.example import Result, Setting
from bridge.models import ResNet18
from bridge.parallel import DataParallel

BATCH, BATCHES, SIDE, CLASSES, RATE = 16, 2, 16, 10, 0.02


def run(setting: Setting, say: Callable[[str], None]) -> Result:
    """Train ResNet-18 with its loop unchanged, only its net wrapped, and compare with one device.

    Args:
        setting: what to run.
        say: takes progress, line by line.

    Returns:
        The losses, the module's state, and how the evaluated outputs of replicas and of one device
        differ: not at all but for rounding, for in evaluation batch norm has fixed statistics.

    Spec: R23.2
    """
    torch.manual_seed(setting.seed)
    module = ResNet18()
    module.apply(_initialize)
    module.to(setting.torch_dtype)
    net = DataParallel(module, ["cpu"] * setting.replicas)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
    draw = torch.Generator().manual_seed(setting.seed)
    images = torch.randn(BATCHES, BATCH, 1, SIDE, SIDE, generator=draw).to(setting.torch_dtype)
    labels = torch.randint(CLASSES, (BATCHES, BATCH), generator=draw)
    losses = []
    for step in range(1, setting.steps + 1):
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(net(images[step % BATCHES]), labels[step % BATCHES])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
        say(f"step {step} of {setting.steps}: loss {losses[-1]:.4f}")
    net.eval()
    alone = copy.deepcopy(module).eval()
    with torch.no_grad():
        difference = (net(images[0]) - alone(images[0])).abs().max().item()
    numbers = {"first loss": losses[0], "last loss": losses[-1], "difference": difference}
    return Result(losses, numbers, module.state_dict())


def _initialize(layer: nn.Module) -> None:
    """Draw the weights of linear and convolution layers from normal(0, 0.01)."""
    if isinstance(layer, nn.Linear | nn.Conv2d):
        nn.init.normal_(layer.weight, std=0.01)
