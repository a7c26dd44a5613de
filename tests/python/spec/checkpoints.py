"""What tests of checkpoint files share."""

import struct
from pathlib import Path
from typing import Any

import torch

from tests.python.spec.vectors import Case, assert_same, tree

FILE = "data.bin"


def written(case: Case, folder: Path) -> Path:
    """Write the file of a case."""
    path = folder / FILE
    path.write_bytes(bytes.fromhex(case["file"]))
    return path


def values(form: Any) -> Any:  # noqa: ANN401 - any tree
    """Read a tree, in which numbers may be given by their bits."""
    if isinstance(form, list):
        return [values(part) for part in form]
    if isinstance(form, dict) and set(form) == {"float"}:
        return struct.unpack(">d", bytes.fromhex(form["float"]))[0]
    return tree(form)


def assert_exact(actual: Any, expected: Any) -> None:  # noqa: ANN401 - any tree
    """Compare two trees, numbers by their bits, where a dict may be any."""
    if isinstance(expected, dict):
        assert isinstance(actual, dict)
        assert list(actual) == list(expected)
        assert list(map(type, actual)) == list(map(type, expected))
        for key, value in expected.items():
            assert_exact(actual[key], value)
    elif isinstance(expected, list | tuple):
        assert type(actual) is type(expected)
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_exact(one, other)
    elif isinstance(expected, float):
        assert type(actual) is float
        assert struct.pack(">d", actual) == struct.pack(">d", expected)
    else:
        assert_same(actual, expected)


def state(seed: int = 0) -> dict[str, Any]:
    """Make a small checkpoint with all kinds of values."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(3, 2, generator=generator)
    return {
        "model": {"weight": weight, "flag": torch.tensor([True]), "none": torch.empty(0, 2)},
        "optimizer": {"state": {0: {"exp_avg": weight * 2}}, "groups": [{"betas": (0.9, 0.999)}]},
        "generator": generator.get_state(),
        "step": seed,
        "loss": float("inf"),
    }
