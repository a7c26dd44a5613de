"""Copies models, and moves their weights by one unit in the last place."""

import torch
from torch import nn

from bridge.parallel.replicate import replicate

BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def nudge(model: nn.Module, seed: int) -> None:
    """Move every weight of a model by one ulp, up or down at random; zeros stay.

    Args:
        model: changed in place.
        seed: of the directions; torch's own random numbers are not touched.

    Spec: R35.3
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if not (parameter.is_floating_point() or parameter.is_complex()):
                continue
            real = torch.view_as_real(parameter) if parameter.is_complex() else parameter
            moved = real.detach().cpu().contiguous()
            up = torch.randint(0, 2, moved.shape, generator=generator).bool()
            # The bits of a float, as a whole number, count the floats from zero on.
            bits = moved.view(BITS[moved.element_size()])
            step = torch.where(up, 1, -1).to(bits.dtype)
            at = (moved != 0) & moved.isfinite()
            real.copy_(torch.where(at, (bits + step).view(moved.dtype), moved))


def twin(model: nn.Module) -> nn.Module:
    """Copy a model, where it is; hooks and closures of the copy act on the copy.

    Spec: R35.3
    """
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    return replicate(model, [device, device])[1]
