"""Reads the vectors, whose form tests/spec/vectors/README.md describes."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

Case = dict[str, Any]

FOLDER = Path(__file__).parents[2] / "spec" / "vectors"
ERRORS = {
    kind.__name__: kind
    for kind in (ValueError, TypeError, KeyError, RuntimeError, FileNotFoundError)
}


@dataclass
class Pair:
    """A record of two parts."""

    x: Any
    y: Any


def cases(name: str) -> pytest.MarkDecorator:
    """Run a test with every case of a file, under the names of the cases."""
    document = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    params = [
        pytest.param(case, id=case["name"], marks=UNFUSED if case.get("fused") else ())
        for case in document["cases"]
    ]
    return pytest.mark.parametrize("case", params)


def fused() -> bool:
    """Tell whether torch multiplies and adds in one, without rounding in between."""
    root = 1 + 2**-12
    rest = torch.full((16,), -(1 + 2**-11)).add(torch.full((16,), root), alpha=root)
    return bool(rest.all())


UNFUSED = pytest.mark.skipif(
    not fused(), reason="torch runs without fused multiply-add here, and gives other bits"
)


def tree(value: Any) -> Any:  # noqa: ANN401 - any tree
    """Read tensors, tuples, dicts, records, lists and plain values."""
    if isinstance(value, list):
        return [tree(part) for part in value]
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return tensor(value["tensor"], value.get("dtype", "float64"), value.get("shape"))
    ((form, content),) = value.items()
    forms: dict[str, Callable[[], Any]] = {
        "tuple": lambda: tuple(map(tree, content)),
        "dict": lambda: {key: tree(part) for key, part in content.items()},
        "pairs": lambda: {tree(key): tree(part) for key, part in content},
        "record": lambda: Pair(*map(tree, content)),
    }
    return forms[form]()


def tensor(values: Any, dtype: str = "float64", shape: list[int] | None = None) -> torch.Tensor:  # noqa: ANN401 - lists of any depth
    """Read a tensor."""
    result = torch.tensor(values, dtype=getattr(torch, dtype))
    return result if shape is None else result.reshape(shape)


def number(value: float | str) -> float:
    """Read a number, which may be ``"nan"`` or ``"inf"``."""
    return float(value) if isinstance(value, str) else value


class Net(nn.Module):
    """A module of given parameters and buffers, which adds its arguments to its first parameter."""

    def __init__(
        self,
        parameters: Mapping[str, torch.Tensor],
        buffers: Mapping[str, torch.Tensor] | None = None,
    ) -> None:
        """Register what is given, in order."""
        super().__init__()
        for name, value in parameters.items():
            self.register_parameter(name, nn.Parameter(value))
        for name, value in (buffers or {}).items():
            self.register_buffer(name, value)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add ``x`` to the first parameter."""
        return next(self.parameters()) + x


@contextmanager
def refusal(case: Case, **places: object) -> Iterator[None]:
    """Expect the error of a case, where it has one: its type and its whole text."""
    if "raises" not in case:
        yield
        return
    ((kind, text),) = case["raises"].items()
    for place, actual in places.items():
        text = text.replace(f"{{{place}}}", str(actual))
    with pytest.raises(ERRORS[kind]) as caught:
        yield
    assert (caught.value.args[0] if kind == "KeyError" else str(caught.value)) == text


def bits(tensor: torch.Tensor) -> bytes:
    """Take the bytes of a tensor, in row-major order."""
    flat = tensor.detach()
    known = flat.view(torch.int16) if flat.dtype == torch.bfloat16 else flat
    content: bytes = known.numpy().tobytes("C")
    return content


def assert_same(actual: Any, expected: Any) -> None:  # noqa: ANN401 - any tree
    """Compare two trees: types, dtypes, shapes and bits."""
    assert type(actual) is type(expected)
    if isinstance(expected, torch.Tensor):
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        assert bits(actual) == bits(expected), f"{actual} != {expected}"
    elif isinstance(expected, dict):
        assert list(actual) == list(expected)
        assert_same(list(actual.values()), list(expected.values()))
    elif isinstance(expected, Pair):
        assert_same((actual.x, actual.y), (expected.x, expected.y))
    elif isinstance(expected, tuple | list):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_same(one, other)
    else:
        assert actual == expected


def assert_close(actual: torch.Tensor, expected: torch.Tensor, relative: float) -> None:
    """Compare two tensors within a share of the largest value; 0 asks for the same bits."""
    if relative == 0:
        assert_same(actual, expected)
    else:
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        assert float((actual - expected).abs().max()) <= relative * float(expected.abs().max())
