"""Weights brought under the names of another file."""

from collections.abc import Mapping

import torch

from bridge.convert.plan import Row, row_of


def match(
    tensors: Mapping[str, torch.Tensor], like: Mapping[str, torch.Tensor]
) -> tuple[dict[str, Row], list[str]]:
    """Find a place for each tensor among those of a file: by name, then by shape and order.

    Args:
        tensors: what is to be placed.
        like: the names and shapes to fill.

    Returns:
        A row for each tensor that has a place, by the name of that place and in the order of
        ``like``; and a line for each that has none, and for each place that stays empty.

    Spec: R29.4
    """
    faults = [
        f"shape differs: {name} is {tuple(tensor.shape)}, expected {tuple(like[name].shape)}"
        for name, tensor in tensors.items()
        if name in like and tensor.shape != like[name].shape
    ]
    left = {name: tensor for name, tensor in tensors.items() if name not in like}
    rows: dict[str, Row] = {}
    for name, place in like.items():
        if name in tensors:
            if tensors[name].shape == place.shape:
                rows[name] = row_of(name, name, tensors[name], _note("", tensors[name], place))
            continue
        fitting = [own for own, tensor in left.items() if tensor.shape == place.shape]
        if not fitting:
            faults.append(
                f"missing: {name} {tuple(place.shape)}, no tensor of its name or shape left"
            )
            continue
        tensor = left.pop(fitting[0])
        note = "by shape" if len(fitting) == 1 else f"by shape and order, first of {len(fitting)}"
        rows[name] = row_of(fitting[0], name, tensor, _note(note, tensor, place))
    faults += [
        f"unexpected: {name} {tuple(tensor.shape)}, no place of its name or shape left"
        for name, tensor in left.items()
    ]
    return rows, faults


def _note(text: str, tensor: torch.Tensor, place: torch.Tensor) -> str:
    """Add what differs without being refused."""
    dtype = (
        "" if tensor.dtype == place.dtype else f"there {str(place.dtype).removeprefix('torch.')}"
    )
    return ", ".join(filter(None, [text, dtype]))
