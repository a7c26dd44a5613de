"""Make one replica of a model per device."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import nn

from bridge.parallel.devices import as_devices, differ
from bridge.parallel.fresh_replica import fresh_replica
from bridge.parallel.module_copier import copy_module
from bridge.parallel.registered import registered

Model = TypeVar("Model", bound=nn.Module)


def replicate(
    model: Model,
    devices: Sequence[str | torch.device],
    factory: Callable[[], Model] | None = None,
) -> list[Model]:
    """Make one replica per device; replica 0 is the model itself.

    So an optimizer on the model's parameters stays valid, and the model is not changed. The other
    replicas are copies with storage of their own and no gradients. What a function captured is
    copied where it leads back to the model, and shared where it does not.

    Args:
        model: the model, on ``devices[0]``.
        devices: one per replica; a device may occur more than once.
        factory: makes a fresh model, for one that cannot be copied; it takes the model's state
            and flags.

    Returns:
        The replicas, in the order of the devices.

    Raises:
        ValueError: no device, a tensor of the model that is not on ``devices[0]``, or a factory
            that makes another model.
        TypeError: something in the model that cannot be copied; the message names it.

    Spec: R4.1, R4.2, R4.3
    """
    places = as_devices("replicate", devices)
    for name, tensor in registered(model):
        if differ(tensor.device, places[0]):
            message = f"replicate: expected {name} on {places[0]}, got {tensor.device}"
            raise ValueError(message)
    replicas = [model]
    for place in places[1:]:
        if factory is None:
            replicas.append(copy_module(model, places[0], place))
        else:
            replicas.append(fresh_replica(factory, replicas, place))
    return replicas
