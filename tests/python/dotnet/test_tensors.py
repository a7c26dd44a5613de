"""Nested arguments in shared memory."""

from typing import NamedTuple

import numpy as np
import pytest
import torch

from bridge.dotnet.tensors import ALIGNMENT, DTYPES, Layout, view


class Pair(NamedTuple):
    """A named tuple, which crosses as a tuple."""

    first: torch.Tensor
    second: float


def crossed(value: object) -> torch.Tensor:
    """Write a tensor to memory and read it back."""
    layout = Layout("step")
    place = layout.place(value)
    memory = memoryview(bytearray(layout.size))
    layout.write(memory)
    return view(memory, place).clone()


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_every_dtype_keeps_its_bits(dtype: torch.dtype) -> None:
    """A tensor of any supported dtype comes out as it went in. Spec: R16.2."""
    value = (torch.arange(12).reshape(3, 4) - 5).to(dtype)
    assert crossed(value).dtype == dtype
    assert torch.equal(crossed(value), value)


def test_views_cross_as_they_look() -> None:
    """Strides, a gradient, no dimension and no element are no obstacle. Spec: R16.2."""
    base = torch.arange(24.0, requires_grad=True).reshape(4, 6)
    for value in (base.t(), base[::2, 1::2], base[0, 0], base[:0], base[0].expand(3, 6)):
        assert torch.equal(crossed(value), value)
        assert crossed(value).shape == value.shape


def test_arrays_cross_as_tensors() -> None:
    """A numpy array may be read-only, run backwards or have no dimension. Spec: R16.2."""
    array = np.arange(6.0).reshape(2, 3)
    array.setflags(write=False)
    for value in (array, array[::-1, ::-1], array[1, 1:2].reshape(())):
        assert np.array_equal(crossed(value).numpy(), value)


def test_tree_describes_the_nest() -> None:
    """Tuples, lists, dicts, numbers and None keep their form, and tensors lie apart.

    Spec: R16.2.
    """
    layout = Layout("step")
    tree = layout.tree(
        {"a": (torch.zeros(3), None), "b": [np.float32(0.5), True], "c": Pair(torch.ones(2), 2)}
    )
    first = {"dtype": "float32", "shape": [3], "offset": 0}
    second = {"dtype": "float32", "shape": [2], "offset": ALIGNMENT}
    assert tree["dict"] == {
        "a": {"tuple": [{"tensor": first}, {"value": None}]},
        "b": {"list": [{"value": 0.5}, {"value": True}]},
        "c": {"tuple": [{"tensor": second}, {"value": 2}]},
    }


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_numbers_that_are_not_finite_go_as_text(number: float) -> None:
    """JSON has no infinity; the text means the same to both sides, and is not taken for one.

    Spec: R16.2.
    """
    text = Layout("step").tree(number)["number"]
    assert text in {"Infinity", "-Infinity", "NaN"}
    assert repr(float(text)) == repr(number)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"text", "step: expected tensors, arrays, numbers, text or None, got bytes"),
        ({1: 2.0}, "step: expected text as the key of a dict, got int"),
        (torch.zeros(2, dtype=torch.complex64), "step: expected a tensor of .*, got complex64"),
        (torch.zeros(2).to_sparse(), "step: expected a dense tensor or a numpy array, got Tensor"),
    ],
)
def test_what_cannot_cross_is_refused(value: object, message: str) -> None:
    """A refusal says what was expected and what was given. Spec: R16.2."""
    with pytest.raises(ValueError, match=message):
        Layout("step").tree(value)
