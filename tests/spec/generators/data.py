"""Digests and orders of data, from PyTorch's draws and the standard library."""

from typing import Any

import torch
from torch.nn import functional

from tests.spec.generators.values import sha256, values

Case = dict[str, Any]
ORDERS = ((1, 0, 0), (2, 0, 0), (10, 0, 0), (10, 0, 1), (10, 1, 0), (257, 2**40, 3), (60000, 7, 2))
DIGESTS: dict[str, list[tuple[str, Any, str]]] = {
    "nothing": [],
    "a vector": [("w", [0.5, -1.25], "float32")],
    "a matrix of float64": [("w", [[0.1, 0.2, 0.3], [-0.0, 1e300, 5e-324]], "float64")],
    "whole numbers": [("n", [-(2**63), 2**63 - 1], "int64"), ("m", [-1, 7], "int32")],
    "small numbers": [("u", [0, 255], "uint8"), ("i", [-128, 127], "int8")],
    "booleans": [("mask", [[True], [False]], "bool")],
    "half precision": [("h", [0.5, 65504.0], "float16")],
    "a scalar": [("step", 3, "int64")],
    "an empty tensor": [("none", [], "float32"), ("one", [1.0], "float32")],
    "the order counts": [("a", [1.0], "float64"), ("b", [2.0], "float64")],
    "the other order": [("b", [2.0], "float64"), ("a", [1.0], "float64")],
    "a name beyond ASCII": [("größe.重み", [1.0], "float32")],
}


def orders() -> Case:
    """Draw permutations from a seeded generator."""
    about = (
        "order(count, seed, epoch) starts with 'first'; 'sha256' is the digest of [('order', it)]."
    )
    cases = []
    for count, seed, epoch in ORDERS:
        drawn = torch.randperm(count, generator=torch.Generator().manual_seed(seed + epoch))
        name = f"{count} samples, seed {seed}, epoch {epoch}"
        given: Case = {"count": count, "seed": seed, "epoch": epoch}
        expected: Case = {"first": drawn[:8].tolist(), "sha256": sha256([("order", drawn)])}
        cases.append({"name": name, "spec": ["R10.5"], **given, **expected})
    return {"about": about, "cases": cases}


def digests() -> Case:
    """Digest tensors of every dtype and shape by the words of the specification."""
    about = "digest(tensors) is 'sha256', for pairs of a name and a tensor."
    cases = []
    for name, rows in DIGESTS.items():
        named = [(key, torch.tensor(value, dtype=getattr(torch, k))) for key, value, k in rows]
        tensors = [
            [key, {"tensor": values(tensor), "dtype": str(tensor.dtype).removeprefix("torch.")}]
            for key, tensor in named
        ]
        case = {"name": name, "spec": ["R11.1"], "tensors": tensors, "sha256": sha256(named)}
        cases.append(case)
    return {"about": about, "cases": cases}


def family() -> Case:
    """Run those operations of the battery that give the same bits in every build."""
    cases = []
    for kind in ("float32", "float64"):
        generator = torch.Generator().manual_seed(20)
        shapes = {"a": (67, 131), "b": (67, 131), "m": (131, 45), "x": (3, 5, 19, 17)}
        drawn = {
            key: torch.randn(shape, generator=generator).to(getattr(torch, kind))
            for key, shape in shapes.items()
        }
        a, b = drawn["a"], drawn["b"]
        results = {
            "add_alpha": torch.add(a, b, alpha=0.3),
            "lerp": torch.lerp(a, b, 0.1),
            "addcmul": torch.addcmul(a, b, b, value=0.001),
            "addcdiv": torch.addcdiv(a, b, b.abs() + 0.5, value=-0.01),
            "avg_pool2d": functional.avg_pool2d(drawn["x"], 2),
        }
        digests = {key: sha256([(key, result)]) for key, result in results.items()}
        cases += [
            {"name": f"{key}.{kind}", "spec": ["R12.1"], "sha256": digest, "fused": True}
            for key, digest in digests.items()
        ]
    about = "battery()[name] is 'sha256', in every build of PyTorch."
    return {"about": about, "cases": cases}
