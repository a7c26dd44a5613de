"""The objects that an object leads to."""

import gc
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FrameType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import NamedTuple
from weakref import ReferenceType

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

CONSTANTS = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    range,
    type,
    ModuleType,
    CodeType,
    FrameType,
    torch.device,
    torch.dtype,
    torch.layout,
)
"""What never changes, or belongs to the program: no replica needs its own."""

FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType, partial, ReferenceType)
"""What has no use of its own, but by what it leads to."""

REGISTRIES = ("_parameters", "_buffers", "_modules")
HOOKS = {
    "register_hook": "_backward_hooks",
    "register_post_accumulate_grad_hook": "_post_accumulate_grad_hooks",
}
"""Where a tensor keeps its hooks; torch 1.13 knows only the first."""


class ObjectLink(NamedTuple):
    """One way from an object to another."""

    label: str
    target: object
    captured: bool = False


def links(value: object) -> Iterator[ObjectLink]:
    """List the objects that an object leads to.

    What a function, or a weak reference, leads to is ``captured``: it does not own the other. The
    handle of a hook leads nowhere: whoever can remove a hook from the model is no part of it.
    """
    if isinstance(value, RemovableHandle):
        return
    if isinstance(value, FUNCTIONS):
        for label, target in _captured(value):
            yield ObjectLink(label, target, captured=True)
        return
    if isinstance(value, nn.Module):
        for registry in REGISTRIES:
            yield from _named(vars(value).get(registry, {}))
    if isinstance(value, dict):
        yield from (ObjectLink(f"[{_key(key)}]", item) for key, item in value.items())
    elif isinstance(value, list | tuple | set | frozenset | deque):
        yield from (ObjectLink(f"[{index}]", item) for index, item in enumerate(value))
    yield from _named(getattr(value, "__dict__", {}))
    if isinstance(value, torch.Tensor):
        yield from (ObjectLink(f".{name}", hook) for name, hook in hooks(value))
    else:
        yield from (ObjectLink("", referent) for referent in gc.get_referents(value))


def hooks(tensor: torch.Tensor) -> Iterator[tuple[str, object]]:
    """List the hooks of a tensor that is a leaf, and how to register them."""
    for register, attribute in HOOKS.items():
        for hook in (getattr(tensor, attribute, None) or {}).values() if tensor.is_leaf else ():
            yield register, hook


def contents(cell: CellType) -> object:
    """Return what a closure's cell holds; None where it is still empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _named(attributes: Mapping[str, object]) -> Iterator[ObjectLink]:
    """Name attributes as the user wrote them."""
    return (ObjectLink(f".{name}", target) for name, target in attributes.items())


def _key(key: object) -> str:
    """Write a key, unless that is long."""
    return repr(key) if isinstance(key, str | int) else type(key).__name__


def _captured(value: object) -> Iterator[tuple[str, object]]:
    """List what a function or a weak reference leads to."""
    if isinstance(value, FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        yield from ((f".{name}", contents(cell)) for name, cell in cells)
        yield from (("", item) for item in (value.__defaults__, value.__kwdefaults__))
    elif isinstance(value, MethodType):
        yield from (("", item) for item in (value.__self__, value.__func__))
    elif isinstance(value, BuiltinFunctionType):
        yield ("", value.__self__)
    elif isinstance(value, partial):
        yield from (("", item) for item in (value.func, value.args, value.keywords))
    elif isinstance(value, ReferenceType):
        yield ("", value())
