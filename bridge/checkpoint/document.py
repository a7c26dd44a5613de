"""A tree as a text of JSON, with names in the places of its tensors."""

import json
import math
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from bridge.checkpoint.checkpoint_error import CheckpointError
from bridge.checkpoint.json_text import Invalid, parse_json

DEPTH = 100
INTEGERS = range(-(2**63), 2**63)
PREFIX = "__bridge__"
"""What the names of tensors outside of ``model`` start with."""


def encode(tree: object) -> tuple[str, dict[str, torch.Tensor]]:
    """Write a tree as JSON, and list its tensors by name.

    Numbers, texts, booleans and None are JSON's own, a list is an array; ``{"tuple": [...]}``,
    ``{"dict": [[key, value], ...]}``, ``{"tensor": name}`` and, for what is not finite, ``{"float":
    bits}`` are the rest. A tensor that is directly in the dict under ``model`` has its key as name.

    Args:
        tree: dicts with keys of type str and int, lists, tuples, tensors, numbers, texts, booleans
            and None.

    Returns:
        The text, and the tensors.

    Raises:
        ValueError, TypeError: something else, too many levels, or an integer beyond 64 bits.

    Spec: R26.4
    """
    tensors: dict[str, torch.Tensor] = {}
    form = _form(tree, "", tensors)
    return json.dumps(form, separators=(",", ":"), allow_nan=False), tensors


def decode(text: str, tensors: Mapping[str, torch.Tensor], name: str) -> Any:  # noqa: ANN401 - any tree
    """Read a tree from JSON and tensors.

    Args:
        text: the JSON.
        tensors: what its names stand for; each takes one place.
        name: the file's, for errors.

    Raises:
        CheckpointError: no such tree, or other tensors.

    Spec: R26.4
    """
    left = dict(tensors)
    try:
        tree = _value(parse_json(text), left)
    except (ValueError, TypeError, KeyError, struct.error) as error:
        message = f"read: expected a tree in {name}, got other JSON"
        raise CheckpointError(message) from error
    if left:
        message = (
            f"read: expected a place for every tensor in {name}, got none for '{next(iter(left))}'"
        )
        raise CheckpointError(message)
    return tree


def _form(value: object, path: str, tensors: dict[str, torch.Tensor], depth: int = 0) -> object:
    """Make what JSON writes of one value."""
    if depth > DEPTH:
        message = f"write: expected at most {DEPTH} levels, got more"
        raise ValueError(message)
    if value is None or isinstance(value, bool | int | float | str):
        return _scalar(value, path)
    if isinstance(value, torch.Tensor):
        # The path of a place is of that place alone.
        tensors[PREFIX + path] = value
        return {"tensor": PREFIX + path}
    if isinstance(value, list | tuple):
        items = [_form(v, f"{path}[{i}]", tensors, depth + 1) for i, v in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, dict):
        return {"dict": [*_pairs(value, path, tensors, depth)]}
    expected = "a dict, list, tuple, tensor, number, text, boolean or None"
    message = f"write: expected {expected} at tree{path}, got {type(value).__name__}"
    raise TypeError(message)


def _pairs(
    value: Mapping[Any, object], path: str, tensors: dict[str, torch.Tensor], depth: int
) -> Iterator[list[object]]:
    """Make the pairs of a dict; those under ``model`` name their tensors."""
    for key, part in value.items():
        if isinstance(key, bool) or not isinstance(key, str | int):
            got = type(key).__name__
            message = f"write: expected keys of type str or int at tree{path}, got {got}"
            raise TypeError(message)
        if path == '["model"]' and isinstance(part, torch.Tensor) and _is_own(key):
            tensors[str(key)] = part
            yield [_scalar(key, path), {"tensor": key}]
        else:
            place = f"{path}[{json.dumps(key)}]"
            yield [_scalar(key, path), _form(part, place, tensors, depth + 1)]


def _is_own(key: str | int) -> bool:
    """Tell whether a key can be the name of its tensor."""
    return isinstance(key, str) and not key.startswith("__")


def _scalar(value: bool | int | float | str | None, path: str) -> object:  # noqa: FBT001, PYI041 - any scalar
    """Make what JSON writes of a value without parts."""
    if isinstance(value, float):
        bits = {"float": struct.pack(">d", value).hex()}
        return float(value) if math.isfinite(value) else bits
    if isinstance(value, str):
        return _text(value, path)
    return value if value is None or isinstance(value, bool) else _int(value, path)


def _int(value: int, path: str) -> int:
    """Refuse what C# has no type for."""
    if int(value) not in INTEGERS:
        message = f"write: expected an integer of 64 bits at tree{path}, got {value}"
        raise ValueError(message)
    return int(value)


def _text(value: str, path: str) -> str:
    """Refuse what UTF-8 cannot write."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        message = f"write: expected text at tree{path}, got half of a pair of surrogates"
        raise ValueError(message) from error
    return value


def _value(form: Any, left: dict[str, torch.Tensor], depth: int = 0) -> Any:  # noqa: ANN401 - any JSON
    """Read one value; whatever is not as written raises."""
    if depth > DEPTH:
        raise ValueError(form)
    if isinstance(form, list):
        return [_value(item, left, depth + 1) for item in form]
    if not isinstance(form, tuple):
        return _plain(form)
    ((kind, content),) = form
    kinds: dict[str, Callable[[], Any]] = {
        "tensor": lambda: left.pop(content),
        "tuple": lambda: tuple(_value(item, left, depth + 1) for item in _list(content)),
        "dict": lambda: _dict(content, left, depth),
        "float": lambda: struct.unpack(">d", bytes.fromhex(content))[0],
    }
    return kinds[kind]()


def _plain(form: Any) -> Any:  # noqa: ANN401 - a number, text, boolean or None
    """Check a number or text."""
    unbounded = isinstance(form, float) and not math.isfinite(form)
    if form is Invalid or unbounded or (isinstance(form, int) and form not in INTEGERS):
        raise ValueError(form)
    return form


def _dict(content: Any, left: dict[str, torch.Tensor], depth: int) -> dict[str | int, Any]:  # noqa: ANN401 - any JSON
    """Read pairs, each key once."""
    result: dict[str | int, Any] = {}
    for key, part in map(_list, _list(content)):
        if isinstance(key, bool) or not isinstance(key, str | int) or key in result:
            raise ValueError(key)
        result[_plain(key)] = _value(part, left, depth + 1)
    return result


def _list(content: Any) -> list[Any]:  # noqa: ANN401 - any JSON
    """Refuse what is no array."""
    if not isinstance(content, list):
        raise TypeError(content)
    return content
