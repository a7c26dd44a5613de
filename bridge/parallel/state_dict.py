"""State dicts, loaded strictly."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import nn


def load_state_dict(
    module: nn.Module, source: Mapping[str, torch.Tensor], prefix: str = ""
) -> None:
    """Load a state strictly: every key, every shape, every dtype; nothing is broadcast.

    Args:
        module: what takes the state.
        source: names and tensors.
        prefix: taken off every name first, such as ``"module."``, which wrappers put there.

    Raises:
        RuntimeError: keys that are missing, unexpected, or of another shape or dtype, listed.

    Spec: R6.2, R6.6. Source: torch/nn/modules/module.py
    """
    names = [name.removeprefix(prefix) for name in source]
    state = dict(zip(names, source.values(), strict=True))
    check_state(module, state, names)
    module.load_state_dict(state)


def check_state(
    module: nn.Module, state: Mapping[str, torch.Tensor], names: Iterable[str] = ()
) -> None:
    """Refuse a state that does not fit, or whose names are there twice.

    Raises:
        RuntimeError: keys that are missing, unexpected, or of another shape or dtype, listed.

    Spec: R6.2, R6.6
    """
    found = [*_twice(names), *faults(module.state_dict(), state)]
    if found:
        lines = "\n\t".join(found)
        message = f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{lines}"
        raise RuntimeError(message)


def _twice(names: Iterable[str]) -> Iterator[str]:
    """Describe names that are there with the prefix and without it."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        yield f"Key(s) with and without the prefix in state_dict: {_quoted(twice)}. "


def faults(own: Mapping[str, torch.Tensor], state: Mapping[str, torch.Tensor]) -> Iterator[str]:
    """Describe what does not fit, in PyTorch's words."""
    missing = [name for name in own if name not in state]
    if missing:
        yield f"Missing key(s) in state_dict: {_quoted(missing)}. "
    unexpected = [name for name in state if name not in own]
    if unexpected:
        yield f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. "
    if unexpected and all(name.removeprefix("module.") in own for name in unexpected):
        yield 'The names start with "module.": load with prefix "module.". '
    for name, here in own.items():
        there = state.get(name)
        if not (isinstance(here, torch.Tensor) and isinstance(there, torch.Tensor)):
            continue
        if here.shape != there.shape:
            yield (
                f"size mismatch for {name}: copying a param with shape {_size(there)} from "
                f"checkpoint, the shape in current model is {_size(here)}."
            )
        elif here.dtype != there.dtype:
            yield (
                f"dtype mismatch for {name}: copying a param with dtype {_kind(there)} from "
                f"checkpoint, the dtype in current model is {_kind(here)}."
            )


def _quoted(names: list[str]) -> str:
    """List names in double quotes."""
    return ", ".join(f'"{name}"' for name in names)


def _size(tensor: torch.Tensor) -> str:
    """Write a shape as PyTorch does."""
    return f"torch.Size({list(tensor.shape)})"


def _kind(tensor: torch.Tensor) -> str:
    """Write a dtype without its package."""
    return str(tensor.dtype).removeprefix("torch.")
