"""What the verbs ask of devices."""

from collections.abc import Sequence

import torch
from torch import nn


def as_devices(verb: str, devices: Sequence[str | torch.device]) -> list[torch.device]:
    """Read a list of devices; at least one is expected.

    Args:
        verb: the caller, named in the error.
        devices: names such as ``"cpu"`` or ``"cuda:1"``, or torch devices.

    Raises:
        ValueError: the list is empty.
    """
    if not devices:
        message = f"{verb}: expected at least 1 device, got 0"
        raise ValueError(message)
    return [torch.device(device) for device in devices]


def device_of(model: nn.Module) -> torch.device:
    """Name the device of a model: that of its first parameter or buffer, else the CPU."""
    for tensor in (*model.parameters(), *model.buffers()):
        return tensor.device
    return torch.device("cpu")
