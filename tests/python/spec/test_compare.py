"""The rules by which values count as identical."""

import math
from typing import get_args

import pytest
import torch

from bridge.parity.compare import Comparison, Rule, compare

RULES = get_args(Rule)
ULP = 2.0**-23  # of float32, at 1


def pair(a: list[float], b: list[float], rule: Rule, dtype: str = "float64") -> Comparison:
    """Compare two tensors of one dtype."""
    kind = getattr(torch, dtype)
    return compare({"w": torch.tensor(a, dtype=kind)}, {"w": torch.tensor(b, dtype=kind)}, rule)[0]


def test_equal_tensors_are_identical() -> None:
    """Equal bits are identical by both rules, and differ by nothing. Spec: R13.1, R13.2."""
    for rule in RULES:
        result = pair([0.1, -2.5, 0.0, 1e-300], [0.1, -2.5, 0.0, 1e-300], rule)
        assert result == Comparison("w", (4,), "float64", 4, 4, 4, 4, 0.0, 0.0)
        assert result.same


def test_one_bit_differs() -> None:
    """One float64 ulp is another bit, and the same number in float32. Spec: R13.1, R13.2."""
    values = [1.0 + 2**-52, 0.5], [1.0, 0.5]
    exact, close = pair(*values, "bitwise"), pair(*values, "float32")
    assert (exact.identical, exact.same) == (1, False)
    assert (close.identical, close.same) == (2, True)
    assert (close.bit_equal, close.bit_equal_float32) == (1, 2)
    assert close.max_abs_difference == 2**-52
    assert close.max_ulp32 == 2**-29


@pytest.mark.parametrize(
    ("ulps", "same"), [(1 / 64, False), (0.999 / 64, True), (-0.999 / 64, True)]
)
def test_limit_is_a_64th_of_an_ulp(ulps: float, same: bool) -> None:  # noqa: FBT001
    """Less than 1/64 ulp32 is identical; 1/64 itself is not. Spec: R13.2."""
    result = pair([1.0], [1.0 + ulps * ULP], "float32")
    assert result.same is same
    assert result.max_ulp32 == pytest.approx(abs(ulps), rel=1e-6)


def test_one_ulp_of_float32_differs() -> None:
    """In float32 the rule allows no other bit. Spec: R13.2."""
    for rule in RULES:
        result = pair([1.0, 2.0], [1.0 + ULP, 2.0], rule, "float32")
        assert (result.identical, result.bit_equal_float32, result.max_ulp32) == (1, 1, 1.0)


def test_small_values_count_by_the_largest() -> None:
    """Below a 1024th of the largest value the spacing is that of the 1024th. Spec: R13.2."""
    spacing = ULP / 1024
    close = pair([1.0, 1e-12], [1.0, 1e-12 + spacing / 65], "float32")
    apart = pair([1.0, 1e-12], [1.0, 1e-12 + spacing / 63], "float32")
    alone = pair([1e-12], [1e-12 + spacing / 65], "float32")
    assert (close.same, apart.same, alone.same) == (True, False, False)


def test_zero_tensors() -> None:
    """Zeros are identical to zeros, and to nothing else. Spec: R13.2."""
    assert pair([0.0, 0.0], [0.0, 0.0], "float32").same
    assert not pair([0.0, 0.0], [0.0, 1e-40], "float32").same


def test_sign_of_zero() -> None:
    """Minus zero has other bits than zero, and is the same number. Spec: R13.1, R13.2."""
    assert not pair([0.0], [-0.0], "bitwise").same
    assert pair([0.0], [-0.0], "float32").same


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_not_finite_is_never_identical(value: float) -> None:
    """NaN and infinities are not identical, not even to themselves. Spec: R13.3."""
    for rule in RULES:
        for a, b in (([value, 1.0], [value, 1.0]), ([value, 1.0], [2.0, 1.0])):
            result = pair(a, b, rule)
            assert (result.identical, result.bit_equal, result.bit_equal_float32) == (1, 1, 1)
            assert (result.max_abs_difference, result.max_ulp32) == (math.inf, math.inf)


def test_beyond_float32() -> None:
    """Beyond float32's range the spacing is that at its end. Spec: R13.2."""
    assert pair([1e39, 1.0], [1e39 * (1 + 2**-52), 1.0], "float32").same
    assert pair([1e300], [1e300], "float32").same
    apart = pair([1e39], [1.001e39], "float32")
    assert not apart.same
    assert apart.max_ulp32 == pytest.approx(1e36 / 2**104, rel=1e-3)


def test_whole_numbers_are_compared_exactly() -> None:
    """Counters beyond float64's whole numbers differ by one. Spec: R13.1, R13.2."""
    for rule in RULES:
        a, b = torch.tensor([2**53, 3]), torch.tensor([2**53 + 1, 3])
        result = compare({"n": a}, {"n": b}, rule)[0]
        assert (result.identical, result.bit_equal) == (1, 1)


def test_empty_tensors_are_identical() -> None:
    """Nothing differs from nothing. Spec: R13.1, R13.2."""
    for rule in RULES:
        assert pair([], [], rule) == Comparison("w", (0,), "float64", 0, 0, 0, 0, 0.0, 0.0)


def test_layout_does_not_count() -> None:
    """A transposed tensor is compared value by value. Spec: R13.1."""
    values = torch.arange(6.0).reshape(2, 3)
    both = {"w": values.t()}, {"w": values.t().contiguous()}
    assert compare(*both, "bitwise")[0].same


def test_other_names_are_refused() -> None:
    """Names that are missing or unexpected, or in another order, are listed. Spec: R13.3."""
    a, b = torch.zeros(1), torch.zeros(1)
    with pytest.raises(ValueError, match=r"missing \['b'\], unexpected \['c'\]"):
        compare({"a": a, "b": b}, {"a": a, "c": b}, "bitwise")
    with pytest.raises(ValueError, match=r"expected the tensors \['a', 'b'\], got \['b', 'a'\]"):
        compare({"a": a, "b": b}, {"b": b, "a": a}, "bitwise")


def test_other_shapes_and_dtypes_are_refused() -> None:
    """Nothing is broadcast or converted. Spec: R13.3."""
    a = torch.zeros(2)
    with pytest.raises(ValueError, match=r"^compare: expected w as torch\.float32 \(2,\), got"):
        compare({"w": a}, {"w": torch.zeros(1)}, "float32")
    with pytest.raises(ValueError, match=r"got torch\.float64 \(2,\)$"):
        compare({"w": a}, {"w": a.double()}, "float32")
