"""The rules by which two values count as identical."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch

Rule = Literal["bitwise", "float32"]
Numbers = npt.NDArray[np.float64]
FLOOR, SHARE = 1024, 64
LARGEST = 2.0**127  # the largest power of two that float32 has


@dataclass(frozen=True)
class Comparison:
    """How one tensor of both sides compares."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    values: int
    identical: int
    bit_equal: int
    bit_equal_float32: int
    max_abs_difference: float
    max_ulp32: float

    @property
    def same(self) -> bool:
        """Tell whether every value is identical by the rule."""
        return self.identical == self.values


def compare(
    python: Mapping[str, torch.Tensor], csharp: Mapping[str, torch.Tensor], rule: Rule
) -> list[Comparison]:
    """Compare two states tensor by tensor, in the order of the Python side.

    By rule ``bitwise`` two values are identical where their bits are. By rule ``float32`` they are
    where ``|a - b| < ulp32(max(|a|, |b|, max|tensor| / 1024)) / 64``, ``ulp32`` being the spacing
    of float32 numbers there: they are the same number at float32's precision. Whole numbers and
    booleans are identical where they are equal. Values that are not finite are never identical.

    Args:
        python: the reference.
        csharp: the port.
        rule: ``"bitwise"`` or ``"float32"``.

    Raises:
        ValueError: names, shapes or dtypes that differ.

    Spec: R13.1, R13.2, R13.3
    """
    if list(python) != list(csharp):
        missing = [name for name in python if name not in csharp]
        extra = [name for name in csharp if name not in python]
        message = (
            f"compare: expected the tensors {list(python)}, got {list(csharp)} "
            f"(missing {missing}, unexpected {extra})"
        )
        raise ValueError(message)
    return [_compare(name, python[name], csharp[name], rule) for name in python]


def _compare(name: str, python: torch.Tensor, csharp: torch.Tensor, rule: Rule) -> Comparison:
    """Compare one tensor."""
    if python.shape != csharp.shape or python.dtype != csharp.dtype:
        expected = f"{python.dtype} {tuple(python.shape)}"
        message = (
            f"compare: expected {name} as {expected}, got {csharp.dtype} {tuple(csharp.shape)}"
        )
        raise ValueError(message)
    a, b = _numbers(python), _numbers(csharp)
    finite = np.isfinite(a) & np.isfinite(b)
    same = torch.eq(python, csharp).cpu().reshape(-1).numpy()
    bits = finite & same & (np.signbit(a) == np.signbit(b))
    exact = rule == "bitwise" or not python.is_floating_point()
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(a - b)
        ulp = ulp32(a, b)
        identical = bits if exact else finite & (difference < ulp / SHARE)
        singles = a.astype(np.float32) == b.astype(np.float32)
        spread = difference / ulp
    return Comparison(
        name=name,
        shape=tuple(python.shape),
        dtype=str(python.dtype).removeprefix("torch."),
        values=a.size,
        identical=int(identical.sum()),
        bit_equal=int(bits.sum()),
        bit_equal_float32=int((finite & singles).sum()),
        max_abs_difference=_largest(difference, finite),
        max_ulp32=_largest(spread, finite),
    )


def ulp32(a: Numbers, b: Numbers) -> Numbers:
    """Measure the spacing of float32 numbers at each pair, not below a 1024th of the largest.

    Beyond float32's range it is the spacing at the end of the range.
    """
    size = np.maximum(np.abs(a), np.abs(b))
    floor = size[np.isfinite(size)].max(initial=0.0) / FLOOR
    places = np.clip(size, floor, LARGEST)
    spacing: Numbers = np.spacing(places.astype(np.float32)).astype(np.float64)
    return spacing


def _numbers(tensor: torch.Tensor) -> Numbers:
    """Flatten a tensor to float64, which holds every narrower float exactly."""
    numbers: Numbers = tensor.detach().cpu().reshape(-1).to(torch.float64).numpy()
    return numbers


def _largest(values: Numbers, finite: npt.NDArray[np.bool_]) -> float:
    """Take the largest value; one that is not finite on either side makes it infinite."""
    if not finite.all():
        return float("inf")
    return float(values.max(initial=0.0))
