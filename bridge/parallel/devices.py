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
        ValueError: the list is empty, or a device is not one of this machine.
    """
    if not devices:
        message = f"{verb}: expected at least 1 device, got 0"
        raise ValueError(message)
    return [_device(verb, device) for device in devices]


def _device(verb: str, name: str | torch.device) -> torch.device:
    """Read a device, which must be there."""
    try:
        device = torch.device(name)
    except RuntimeError:
        message = f"{verb}: expected a device such as cpu or cuda:0, got {name}"
        raise ValueError(message) from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        message = f"{verb}: expected device {device} on this machine, got {count} GPUs"
        raise ValueError(message)
    return device


def device_of(model: nn.Module) -> torch.device:
    """Name the device of a model: that of its first parameter or buffer, else the CPU."""
    for tensor in (*model.parameters(), *model.buffers()):
        return tensor.device
    return torch.device("cpu")


def differ(actual: torch.device, expected: torch.device) -> bool:
    """Tell whether two devices differ; ``cuda`` stands for whichever GPU is current."""
    same_index = None in (actual.index, expected.index) or actual.index == expected.index
    return actual.type != expected.type or not same_index
