"""Give every replica the state of replica 0."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Literal

import torch
from torch import nn
from torch.optim import Optimizer

from bridge.parallel.average import widened
from bridge.parallel.state_dict import load_state_dict

Buffers = Literal["first", "mean", "each"]


@torch.no_grad()
def resync(
    replicas: Sequence[nn.Module],
    buffers: Buffers = "first",
    optimizers: Sequence[Optimizer] = (),
) -> None:
    """Let every replica take replica 0's state through ``load_state_dict``.

    Parameters are always replica 0's. Buffers follow a policy: ``first`` takes replica 0's,
    ``mean`` the mean over the replicas where they are floating point (counters are replica 0's),
    ``each`` leaves every replica its own. Buffers that are not persistent are each replica's own.

    Args:
        replicas: modules with the same state.
        buffers: ``"first"``, ``"mean"`` or ``"each"``.
        optimizers: one per replica, where each has its own; they take the first one's state.

    Raises:
        ValueError: no replicas, another policy, or another number of optimizers.
        RuntimeError: keys that are missing, unexpected, or of another shape or dtype, listed.

    Spec: R6.1, R6.2, R6.4, R6.5
    """
    if not replicas:
        message = "resync: expected at least 1 replica, got 0"
        raise ValueError(message)
    if buffers not in ("first", "mean", "each"):
        message = f"resync: expected buffers first, mean or each, got {buffers}"
        raise ValueError(message)
    if optimizers and len(optimizers) != len(replicas):
        count = len(replicas)
        message = f"resync: expected {count} optimizers, one per replica, got {len(optimizers)}"
        raise ValueError(message)
    if len(replicas) == 1:
        return
    if buffers == "mean":
        _average_buffers(replicas)
    state = replicas[0].state_dict()
    for replica in replicas[1:]:
        own = replica.state_dict() if buffers == "each" else {}
        kept = {name: own[name] for name, _ in replica.named_buffers() if name in own}
        load_state_dict(replica, {**state, **kept})
    for optimizer in optimizers[1:]:
        _copy_optimizer(optimizers[0], optimizer)


def _copy_optimizer(source: Optimizer, target: Optimizer) -> None:
    """Give an optimizer the options and the state of another one, bit for bit."""
    target.load_state_dict(deepcopy(source.state_dict()))
    # It has cast tensors of the state to the dtypes of the parameters.
    for given, own in zip(_parameters(source), _parameters(target), strict=True):
        if given in source.state:
            held = deepcopy(source.state[given])
            target.state[own] = _moved(held, given.device, own.device)


def _parameters(optimizer: Optimizer) -> list[torch.Tensor]:
    """List the parameters of an optimizer, group by group."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _moved(value: Any, source: torch.device, target: torch.device) -> Any:  # noqa: ANN401 - any state
    """Move what is on one device to another; counters on the CPU stay there."""
    if isinstance(value, torch.Tensor):
        return value.to(target) if value.device == source else value
    if isinstance(value, dict):
        return {key: _moved(part, source, target) for key, part in value.items()}
    if isinstance(value, list):
        return [_moved(part, source, target) for part in value]
    return value


def _average_buffers(replicas: Sequence[nn.Module]) -> None:
    """Put the mean of the floating-point buffers, added in replica order, on replica 0."""
    states = [replica.state_dict() for replica in replicas]
    for name, first in replicas[0].named_buffers():
        if name not in states[0] or not first.is_floating_point():
            continue
        total = widened(first) / len(states)
        for state in states[1:]:
            total.add_(widened(state[name].to(first.device)), alpha=1 / len(states))
        first.copy_(total)
