"""Makes replicas by a factory, for a model that cannot be copied."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import torch
from torch import nn

from bridge.parallel.registered import registered
from bridge.parallel.state_dict import load_state_dict

Model = TypeVar("Model", bound=nn.Module)
T = TypeVar("T")


def fresh_replica(
    factory: Callable[[], Model], replicas: Sequence[Model], device: torch.device
) -> Model:
    """Make a model with a factory and give it the state and the flags of replica 0.

    Args:
        factory: makes a model; what it draws is drawn from no stream of the caller's.
        replicas: those made already.
        device: where it belongs.

    Raises:
        ValueError: a factory that makes another model, or one with tensors that are in use.
        RuntimeError: keys that are missing, unexpected, or of another shape or dtype, listed.

    Spec: R4.9
    """
    with torch.random.fork_rng(range(torch.cuda.device_count())):
        replica = factory()
    _check_fresh(replica, replicas)
    load_state_dict(replica, replicas[0].state_dict())
    _take_buffers(replica, replicas[0])
    _take_flags(replica, replicas[0])
    return replica.to(device)


def _check_fresh(replica: nn.Module, replicas: Sequence[nn.Module]) -> None:
    """Refuse a model that has a tensor of another replica."""
    used = {id(tensor) for other in replicas for _, tensor in registered(other)}
    for name, tensor in registered(replica):
        if id(tensor) in used:
            message = (
                f"replicate: expected a fresh model from factory, got {name} of another replica"
            )
            raise ValueError(message)


@torch.no_grad()
def _take_buffers(replica: nn.Module, model: nn.Module) -> None:
    """Take the buffers that no state dict has, too."""
    own = dict(replica.named_buffers())
    for name, buffer in model.named_buffers():
        expected, actual = _kind(buffer), _kind(own[name]) if name in own else "none"
        if expected != actual:
            message = f"replicate: expected buffer {name} of {expected} from factory, got {actual}"
            raise ValueError(message)
        own[name].copy_(buffer)


def _take_flags(replica: nn.Module, model: nn.Module) -> None:
    """Take what is frozen, and which modules are in which mode."""
    parameters = dict(replica.named_parameters())
    for name, parameter in model.named_parameters():
        _found(parameters, "parameter", name).requires_grad = parameter.requires_grad
    modules = dict(replica.named_modules())
    for name, module in model.named_modules():
        _found(modules, "module", name).training = module.training


def _found(own: Mapping[str, T], kind: str, name: str) -> T:
    """Find what the factory's model has by a name of the model's."""
    if name not in own:
        message = f"replicate: expected {kind} {name} from factory, got none"
        raise ValueError(message)
    return own[name]


def _kind(tensor: torch.Tensor) -> str:
    """Describe a tensor but its values."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"shape {tuple(tensor.shape)} and dtype {dtype}"
