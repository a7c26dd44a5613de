"""Make one replica of a model per device."""

import copy
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import nn

from bridge.parallel.devices import as_devices

Model = TypeVar("Model", bound=nn.Module)


def replicate(model: Model, devices: Sequence[str | torch.device]) -> list[Model]:
    """Make one replica per device; replica 0 is the model itself.

    So an optimizer on the model's parameters stays valid, and the model is not changed. The other
    replicas are deep copies with storage of their own and no gradients.

    Args:
        model: the model, on ``devices[0]``.
        devices: one per replica; a device may occur more than once.

    Returns:
        The replicas, in the order of the devices.

    Raises:
        ValueError: no device, or a tensor of the model that is not on ``devices[0]``.

    Spec: R4.1, R4.2, R4.3
    """
    places = as_devices("replicate", devices)
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if _differs(tensor.device, places[0]):
            message = f"replicate: expected {name} on {places[0]}, got {tensor.device}"
            raise ValueError(message)
    return [model, *(copy.deepcopy(model).to(place) for place in places[1:])]


def _differs(actual: torch.device, expected: torch.device) -> bool:
    """Tell whether two devices differ; ``cuda`` stands for whichever GPU is current."""
    same_index = expected.index is None or actual.index == expected.index
    return actual.type != expected.type or not same_index
