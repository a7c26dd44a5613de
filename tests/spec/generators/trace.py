"""What a trace keeps of tensors, by the words of docs/TRACE.md, in whole-number arithmetic."""

import math
from fractions import Fraction
from typing import Any

import torch

from bridge.trace.xxh import xxh128

Case = dict[str, Any]
WIDTH, BUCKETS, ROWS, MASK = 3937, 31, 32, 2**64 - 1
TENSORS: dict[str, tuple[Any, str]] = {
    "no value": ([], "float32"),
    "one value": (-2.5, "float64"),
    "a few values": ([0.5, -1.25, 3.0, 0.0, 7.5], "float32"),
    "a matrix": ([[1.0, 2.0, 3.0], [-4.0, 5.5, -6.0]], "float64"),
    "half precision": ([0.5, 65504.0, -3.0], "float16"),
    "bfloat16": ([0.5, -3.0, 128.0], "bfloat16"),
    "whole numbers": ([2**40, -7, 3], "int64"),
    "32 bits": ([1, -2, 3], "int32"),
    "16 bits": ([1, -2, 300], "int16"),
    "small whole numbers": ([1, -2, 3], "int8"),
    "bytes": (list(range(40)), "uint8"),
    "booleans": ([[True], [False], [True]], "bool"),
    "NaN": ([1.0, math.nan, math.inf], "float32"),
    "infinities": ([1.0, -math.inf, math.inf], "float64"),
}
RAMPS = {
    "a row": (3937, "float32"), "a row and one": (3938, "float32"), "five rows": (19000, "float64"),
    "a chunk and one": (125985, "float32"), "three chunks": (300001, "float64"),
}  # fmt: skip


def traces() -> Case:
    """Summarize tensors."""
    about = (
        "The record of a tensor says 'digest', 'norm', 'min', 'max', 'nan', 'inf' and "
        "'projections' of it. A tensor of 'ramp' n has n values ((7 i) mod 64 - 32) / 8."
    )
    cases = []
    for name, (values, dtype) in TENSORS.items():
        tensor = torch.tensor(values, dtype=getattr(torch, dtype))
        given = {"tensor": {"tensor": _named(tensor.tolist()), "dtype": dtype}}
        cases.append({"name": name, "spec": ["R30.2"], **given, **_expected(tensor)})
    for name, (count, dtype) in RAMPS.items():
        tensor = ((torch.arange(count) * 7 % 64 - 32) / 8).to(getattr(torch, dtype))
        given = {"ramp": count, "dtype": dtype}
        cases.append({"name": name, "spec": ["R30.2"], **given, **_expected(tensor)})
    return {"about": about, "cases": cases}


def _expected(tensor: torch.Tensor) -> Case:
    """Calculate what a record says."""
    values = tensor.double().reshape(-1).tolist()
    content = tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
    nan, infinite = sum(map(math.isnan, values)), sum(map(math.isinf, values))
    ends = (math.nan, math.nan) if nan else (min(values, default=0.0), max(values, default=0.0))
    expected = {"digest": xxh128(memoryview(content)), "norm": math.nan if nan else math.inf}
    expected |= {"min": ends[0], "max": ends[1], "nan": nan, "inf": infinite, "projections": None}
    if not nan + infinite:
        squares = sum(Fraction(value) ** 2 for value in values)
        expected |= {"norm": math.sqrt(squares), "projections": _projections(values)}
    if nan:
        del expected["digest"]  # NaN has many bits
    return {key: _named(value) for key, value in expected.items()}


def _projections(values: list[float]) -> list[float]:
    """Add up each bucket's values with their signs; what is added is exact, so no order counts."""
    sums = [Fraction(0)] * BUCKETS
    for index, value in enumerate(values):
        row, column = divmod(index, WIDTH)
        chunk, row = divmod(row, ROWS)
        sign = _sign((chunk + 1) * 2048, column)
        while row:  # take the sign of the row, and go on to the row to which it is added
            sign *= _sign(0, row * WIDTH + column)
            row -= 1 << (row.bit_length() - 1)
        turn = _word(2112 + column // BUCKETS) % BUCKETS if column >= BUCKETS else 0
        sums[(column + turn) % BUCKETS] += sign * Fraction(value)
    return [float(total) for total in sums]


def _sign(first: int, place: int) -> int:
    """Return the sign at a place of the stream that begins with a word."""
    return 1 - 2 * (_word(first + place // 64) >> place % 64 & 1)


def _word(index: int) -> int:
    """Return a word of SplitMix64 with seed 0."""
    z = (index + 1) * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def _named(value: Any) -> Any:  # noqa: ANN401 - lists of any depth
    """Write numbers that JSON does not have as text."""
    if isinstance(value, list):
        return [_named(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
