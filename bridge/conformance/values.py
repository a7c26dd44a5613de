"""Values of a case: drawn for PyTorch, described for C#."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from bridge.conformance.cases import Case
from bridge.dotnet.tensors import Layout


def draw(text: str, seed: int) -> torch.Tensor:
    """Draw the tensor that a text describes.

    The text has a shape, then any of: a dtype; ``LOW:HIGH`` for whole numbers from LOW up to, not
    including, HIGH; ``uniform`` in [0, 1), ``positive``, ``sign`` (-1 or 1), ``sorted``, ``spd``
    (symmetric, positive definite), ``probability`` (rows that add up to 1); else numbers are drawn
    from the normal distribution. ``const``: no gradient is asked for.

    Args:
        text: such as ``2x3``, ``scalar``, ``4 int64 0:10`` or ``2x3 uniform const``.
        seed: what is drawn depends on it and on the text alone.

    Raises:
        ValueError: a word that is none of these.
    """
    shape, *words = text.split()
    sizes = [] if shape == "scalar" else [int(size) for size in shape.split("x")]
    generator = torch.Generator().manual_seed(seed)
    limits = next((word.split(":") for word in words if ":" in word), None)
    if limits:
        low, high = map(int, limits)
        tensor = torch.randint(low, high, sizes, generator=generator)
    elif "uniform" in words:
        tensor = torch.rand(sizes, generator=generator)
    else:
        tensor = torch.randn(sizes, generator=generator)
    for word in words:
        if ":" not in word:
            tensor = _shaped(tensor, word)
    return tensor


def _shaped(tensor: torch.Tensor, word: str) -> torch.Tensor:
    """Give a drawn tensor the form that a word asks for."""
    if word in _FORMS:
        return _FORMS[word](tensor)
    dtype = getattr(torch, word, None)
    if not isinstance(dtype, torch.dtype):
        message = f"draw: expected a dtype, LOW:HIGH, or one of {', '.join(_FORMS)}, got {word!r}"
        raise ValueError(message)  # noqa: TRY004 - the text has the wrong value
    return tensor > 0 if dtype == torch.bool else tensor.to(dtype)


def _spd(tensor: torch.Tensor) -> torch.Tensor:
    """Make a matrix symmetric and positive definite; in this order every build gets the same."""
    product: torch.Tensor = torch.eye(tensor.shape[-1]).expand(tensor.shape)
    for row in tensor.unbind(-2):
        product = product + row.unsqueeze(-1) * row.unsqueeze(-2)
    return product


def _probability(tensor: torch.Tensor) -> torch.Tensor:
    """Make every row one of probabilities."""
    size = tensor.shape[-1]
    row: torch.Tensor = torch.arange(1, size + 1) * (2.0 / (size * (size + 1)))
    return row.expand(tensor.shape)


_FORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "const": lambda tensor: tensor,
    "uniform": lambda tensor: tensor,
    "positive": lambda tensor: tensor.abs() + 0.5,
    "sign": lambda tensor: torch.where(tensor < 0, -1.0, 1.0),
    "sorted": lambda tensor: tensor.gather(-1, tensor.argsort(-1)),
    "spd": _spd,
    "probability": _probability,
}
"""Words that give a drawn tensor another form; ``uniform`` and ``const`` are for others."""


def inputs(case: Case) -> list[Any]:
    """Draw the inputs of a case; numbers and None stay what they are."""
    return [_input(value, 100 + place) for place, value in enumerate(case.inputs)]


def _input(value: object, seed: int) -> Any:  # noqa: ANN401 - a tensor, a number or a list
    """Draw one input; a list is a list of them."""
    if isinstance(value, str):
        return draw(value, seed)
    if isinstance(value, list):
        return [_input(part, seed + 10 * place) for place, part in enumerate(value)]
    return argument(value) if isinstance(value, Mapping) else value


def leaves(case: Case, drawn: Sequence[Any]) -> list[int]:
    """Choose the inputs that gradients are compared of: floats that are not ``const``."""
    if case.torch.endswith("_"):
        return []
    return [
        place
        for place, value in enumerate(drawn)
        if isinstance(value, torch.Tensor)
        and value.is_floating_point()
        and "const" not in str(case.inputs[place])
    ]


def argument(value: object) -> Any:  # noqa: ANN401 - what PyTorch takes
    """Turn a value of the data into PyTorch's."""
    if not isinstance(value, Mapping):
        return [argument(part) for part in value] if isinstance(value, list) else value
    if "plain" in value:
        return value["plain"]
    if "tensor" in value:
        return draw(value["tensor"], 55)
    if "dtype" in value:
        return getattr(torch, value["dtype"])
    if "power" in value:
        root = value["power"]
        return lambda epoch: root**epoch
    if "layer" in value:
        return find(value["layer"])(**keywords(value["arguments"]))
    message = f"argument: expected plain, tensor, dtype, power or layer, got {sorted(value)}"
    raise ValueError(message)


def keywords(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the arguments of the data into PyTorch's, lists into tuples."""
    made = {name: argument(value) for name, value in arguments.items()}
    return {name: tuple(part) if isinstance(part, list) else part for name, part in made.items()}


def find(name: str) -> Any:  # noqa: ANN401 - a class or a function
    """Find what a dotted name below ``torch`` names.

    Raises:
        AttributeError: this PyTorch has no such name.
    """
    found: Any = torch
    for part in name.split("."):
        found = getattr(found, part)
    return found


def described(
    layout: Layout, arguments: Mapping[str, Any], names: Mapping[str, Sequence[str]]
) -> list[dict[str, Any]]:
    """Describe arguments for C#: each with what TorchSharp may call it."""
    return [
        {"names": [name, *names.get(name, ())], "value": layout.tree(_plain(value, names))}
        for name, value in arguments.items()
    ]


def _plain(value: object, names: Mapping[str, Sequence[str]]) -> Any:  # noqa: ANN401 - a tree
    """Turn a value of the data into what crosses to C#."""
    if isinstance(value, list):
        return [_plain(part, names) for part in value]
    if not isinstance(value, Mapping):
        return value
    if "tensor" in value or "plain" in value:
        return argument(value)
    if "arguments" in value:
        inner = [
            {"names": [name, *names.get(name, ())], "value": _plain(part, names)}
            for name, part in value["arguments"].items()
        ]
        return {**value, "arguments": inner}
    return dict(value)
