"""What a file of ``torch.save`` may hold."""

import json
from collections import Counter, OrderedDict

import torch
from torch import nn

from bridge.checkpoint.entry import DTYPES
from bridge.parity.digest import dtype_name

LEVELS = 100
PLACES = 10_000_000
"""More places than any state has; what is one object may be in many places."""

INTEGERS = range(-(2**63), 2**63)


class Plain:
    """Checks a tree, each part once, wherever and however often it is in the tree.

    Spec: R26.9, R26.10
    """

    def __init__(self) -> None:
        """Begin with nothing known."""
        self._known: dict[int, tuple[int, int]] = {}

    def check(self, value: object, path: str = "tree", depth: int = 0) -> tuple[int, int]:
        """Count the places and levels of a value.

        Raises:
            ValueError, TypeError: no dict, OrderedDict or Counter with keys of type str and int,
                list, tuple, size, dense tensor, dtype, number, text, boolean or None, at its place;
                too many levels or places. The text goes on after "expected".
        """
        if id(value) in self._known:
            return self._known[id(value)]
        parts = _parts(value, path)
        if parts is None:
            _check_leaf(value, path)
            return 1, 0
        # The first bound ends what holds itself, before the second can be known.
        sizes = [self.check(part, place, depth + 1) for place, part in parts if depth < LEVELS]
        places = 1 + sum(size[0] for size in sizes)
        levels = 1 + max((size[1] for size in sizes), default=0)
        if depth >= LEVELS or levels > LEVELS or places > PLACES:
            message = f"at most {LEVELS} levels and {PLACES} places, got more"
            raise ValueError(message)
        self._known[id(value)] = places, levels
        return places, levels


def _parts(value: object, path: str) -> list[tuple[str, object]] | None:
    """List the parts of a container, or None where the value is a leaf."""
    kind = type(value)
    if kind in {list, tuple, torch.Size} and isinstance(value, list | tuple):
        return [(f"{path}[{i}]", part) for i, part in enumerate(value)]
    if kind not in {dict, OrderedDict, Counter} or not isinstance(value, dict):
        return None
    for key in value:
        if type(key) not in {str, int}:
            message = f"keys of type str or int at {path}, got {type(key).__name__}"
            raise TypeError(message)
        _check_leaf(key, path)
    parts = [(f"{path}[{json.dumps(key)}]", part) for key, part in value.items()]
    attributes = getattr(value, "__dict__", {})
    if set(attributes) - {"_metadata"}:
        message = f"no attributes but _metadata at {path}, got {', '.join(map(str, attributes))}"
        raise ValueError(message)
    return parts + [(f"{path}._metadata", part) for part in attributes.values()]


def _check_leaf(value: object, path: str) -> None:
    """Refuse what no state has, or what the other language cannot read."""
    kind = type(value)
    if value is None or kind in {bool, float}:
        return
    if kind is int:
        if value not in INTEGERS:
            message = f"integers of 64 bits at {path}, got {value}"
            raise ValueError(message)
    elif kind is str:
        _check_text(str(value), path)
    elif kind in {torch.Tensor, nn.Parameter} and isinstance(value, torch.Tensor):
        _check_tensor(value, path)
    elif not isinstance(value, torch.dtype) or value not in DTYPES.values():
        message = f"what state dicts are made of at {path}, got {kind.__name__}"
        raise TypeError(message)


def _check_text(text: str, path: str) -> None:
    """Refuse what UTF-8 cannot write."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"text at {path}, got half of a pair of surrogates"
        raise ValueError(message) from error


def _check_tensor(tensor: torch.Tensor, path: str) -> None:
    """Refuse tensors whose values are not in one dense memory, or of another dtype."""
    dense = tensor.layout == torch.strided and not (tensor.is_meta or tensor.is_quantized)
    if not dense:
        message = f"a dense tensor with values at {path}, got another"
        raise ValueError(message)
    if tensor.dtype not in DTYPES.values():
        expected = ", ".join(map(dtype_name, DTYPES.values()))
        message = f"one of {expected} at {path}, got {dtype_name(tensor.dtype)}"
        raise ValueError(message)
