"""How what Python and C# gave compares: bits, ulps, or values."""

from dataclasses import dataclass
from typing import Literal

import torch

from bridge.conformance.outcome import Outcome
from bridge.parity.digest import dtype_name

Verdict = Literal["same bits", "within ulps", "differs", "missing", "throws", "not run"]
VERDICTS: tuple[Verdict, ...] = (
    "same bits",
    "within ulps",
    "differs",
    "missing",
    "throws",
    "not run",
)
"""From the best to the worst."""

LIMIT = 256
"""With more ulps than these the two differ: another formula, or a sum that cancels."""

_FLOOR = 1024


@dataclass(frozen=True)
class Aspect:
    """How one tensor or text of a case compares.

    Attributes:
        name: what it is, such as ``gradient.weight``.
        verdict: one of :data:`VERDICTS`.
        ulp: the largest difference in ulps, None where there is none to measure.
        python: what Python has, in words.
        csharp: what C# has, in words.
    """

    name: str
    verdict: Verdict
    ulp: float | None = None
    python: str = ""
    csharp: str = ""


def worst(verdicts: list[Verdict]) -> Verdict:
    """Choose the worst of some verdicts; of none it is ``not run``."""
    return max(verdicts, key=VERDICTS.index, default="not run")


def compare(python: Outcome, csharp: Outcome) -> list[Aspect]:
    """Compare what both sides gave, name by name, in Python's order.

    A difference is measured in ulps: the spacing of the dtype's numbers at the larger of the two
    values, not below a 1024th of the tensor's largest.

    Spec: R31.3
    """
    texts = dict.fromkeys([*python.texts, *csharp.texts])
    tensors = dict.fromkeys([*python.tensors, *csharp.tensors])
    return [
        *(_text(name, python.texts.get(name), csharp.texts.get(name)) for name in texts),
        *(_tensor(name, python.tensors.get(name), csharp.tensors.get(name)) for name in tensors),
    ]


def _text(name: str, python: str | None, csharp: str | None) -> Aspect:
    """Compare one text."""
    verdict: Verdict = "same bits" if python == csharp else "differs"
    return Aspect(name, verdict, None, python or "none", csharp or "none")


def _tensor(name: str, python: torch.Tensor | None, csharp: torch.Tensor | None) -> Aspect:
    """Compare one tensor."""
    if python is None or csharp is None:
        return Aspect(name, "differs", None, _form(python), _form(csharp))
    if python.shape != csharp.shape or python.dtype != csharp.dtype:
        return Aspect(name, "differs", None, _form(python), _form(csharp))
    if _bits(python).equal(_bits(csharp)):
        return Aspect(name, "same bits", 0.0)
    ulps = _ulps(python.reshape(-1).double(), csharp.reshape(-1).double(), python.dtype)
    if ulps.numel() and bool(ulps.max() == 0) and python.is_floating_point():
        return Aspect(name, "within ulps", 0.0, "zeros or NaNs", "the same, of another sign")
    place = int(ulps.argmax())
    largest = float(ulps[place])
    verdict: Verdict = "within ulps" if largest <= LIMIT else "differs"
    where = ", ".join(map(str, _index(place, python.shape)))
    sides = [f"[{where}] {_number(side.reshape(-1)[place])}" for side in (python, csharp)]
    return Aspect(name, verdict, largest, *sides)


def _ulps(a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Measure the difference of each pair; one that is not finite on one side alone is infinite."""
    inf = float("inf")
    difference = (a - b).abs()
    same = (a == b) | (a.isnan() & b.isnan())
    if not dtype.is_floating_point:
        return torch.where(same, 0.0, inf)
    size = torch.maximum(a.abs(), b.abs())
    finite = size[size.isfinite()]
    floor = float(finite.max()) / _FLOOR if finite.numel() else 0.0
    exponent = (
        torch.frexp(size.clamp(max(floor, torch.finfo(dtype).tiny), torch.finfo(dtype).max))[1] - 1
    )
    spacing = torch.finfo(dtype).eps * torch.pow(2.0, exponent.double())
    return torch.where(same, 0.0, (difference / spacing).nan_to_num(inf, inf))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """View a tensor as bytes."""
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _index(place: int, shape: torch.Size) -> list[int]:
    """Turn the place in a flat tensor into an index."""
    index = []
    for size in reversed(shape):
        index.append(place % size)
        place //= size
    return index[::-1]


def _form(tensor: torch.Tensor | None) -> str:
    """Describe the form of a tensor, and its values where they are few."""
    if tensor is None:
        return "none"
    return f"{dtype_name(tensor.dtype)}[{', '.join(map(str, tensor.shape))}]"


def _number(value: torch.Tensor) -> str:
    """Write a number with as many digits as tell it from its neighbours."""
    if not value.is_floating_point():
        return str(value.item())
    return f"{value.item():.{17 if value.dtype == torch.float64 else 9}g}"
