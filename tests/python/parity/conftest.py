"""The rule of this leg, and reports of runs that never ran for the tests of what shows them."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from bridge.dotnet import IsolatedHost
from bridge.parity import family
from bridge.parity.compare import Rule

Report = dict[str, Any]
_TENSORS = {
    "conv1.weight": [20, 1, 3, 3],
    "conv1.bias": [20],
    "conv2.weight": [50, 20, 5, 5],
    "conv2.bias": [50],
    "fc1.weight": [128, 800],
    "fc1.bias": [128],
    "fc2.weight": [10, 128],
    "fc2.bias": [10],
}
_BATCH = {"step": 1, "parameter": "batch", "max_abs_difference": None, "max_ulp32": None}
_KINDS: dict[str, Report] = {
    "identical": {"steps": 120},
    "one step": {"steps": 1},
    "diverged": {"steps": 40, "diverged_at": 7},
    "diverged bitwise": {"steps": 40, "diverged_at": 7, "rule": "bitwise"},
    "interrupted": {"steps": 12, "planned_steps": 469, "interrupted": True},
    "no step": {"steps": 0, "digest": {"python": None, "csharp": None}},
    "failed": {"steps": 3, "error": "step: the worker was killed\n  by SIGKILL"},
    "another batch": {"steps": 3, "verdict": "diverged", "first_divergence": _BATCH},
    "not measured": {"steps": 2, "max_abs_difference": None, "accuracy_series": []},
}


@pytest.fixture(scope="session")
def rule(shared_host: IsolatedHost) -> Iterator[Rule]:
    """Take rule bitwise where both sides are of one build family, else float32."""
    threads = torch.get_num_threads()
    yield family.rule(family.compare(shared_host, 1))
    torch.set_num_threads(threads)


@pytest.fixture(params=_KINDS)
def every_report(request: pytest.FixtureRequest) -> Report:
    """Give a report of every kind of run in turn."""
    return sample(**_KINDS[request.param])


@pytest.fixture
def make_report() -> Callable[..., Report]:
    """Give the maker of sample reports."""
    return sample


def sample(*, steps: int = 40, diverged_at: int | None = None, **changes: object) -> Report:
    """Make the report of a LeNet that agrees to the end, or diverges at a step."""
    report = _frame(steps)
    report["series"] = [_point(step, diverged_at) for step in range(1, steps + 1)]
    report["accuracy_series"] = [
        {"step": step, "python": _accuracy(step), "csharp": _accuracy(step)}
        for step in sorted({*range(50, steps, 50), steps} - {0})
    ]
    if steps:
        report |= _compared(report["series"][-1])
    if diverged_at is not None:
        report |= _diverged(report, diverged_at)
    return report | changes


def _point(step: int, diverged_at: int | None) -> Report:
    apart = diverged_at is not None and step >= diverged_at
    grown = 1e-16 * math.sqrt(step) if step > 3 else 0.0
    difference = 2e-6 * (step - (diverged_at or 0) + 1) if apart else grown
    loss = 0.4 + 1.9 * math.exp(-step / 90) + 0.06 * math.sin(step * 1.7) * math.cos(step * 0.61)
    return {
        "step": step,
        "python": loss,
        "csharp": loss + 4e4 * difference if apart else loss,
        "difference": difference,
        "ulp32": difference / 2**-28,
        "identical": not apart,
        "seconds": {"python": 0.18, "csharp": 0.2},
    }


def _accuracy(step: int) -> float:
    return round(0.85 - 0.6 * math.exp(-step / 110), 4)


def _compared(last: Report) -> Report:
    shared = {"max_abs_difference": last["difference"], "max_ulp32": last["ulp32"]}
    tensors = [
        {"name": name, "shape": shape, "dtype": "float64", "values": math.prod(shape)}
        | _counts(math.prod(shape)) | shared | {"moved": True}
        for name, shape in _TENSORS.items()
    ]  # fmt: skip
    total = sum(math.prod(shape) for shape in _TENSORS.values())
    accuracy = dict.fromkeys(("python", "csharp"), _accuracy(last["step"]))
    return {
        "parameters": total, **_counts(total), **shared, "tensors": tensors, "accuracy": accuracy,
        "verdict": "identical",
        "reason": f"All {total:,} parameters are identical after each of {last['step']} steps.",
    }  # fmt: skip


def _counts(values: int) -> Report:
    return {"identical": values, "bit_equal": values // 90, "bit_equal_float32": values}


def _diverged(report: Report, step: int) -> Report:
    report["tensors"][0] |= {"identical": 12, "bit_equal": 0, "bit_equal_float32": 9}
    return {
        "verdict": "diverged",
        "reason": f"conv1.weight differs by more than rule float32 allows from step {step} on.",
        "identical": report["parameters"] - 168,
        "first_divergence": {
            "step": step,
            "parameter": "conv1.weight",
            "max_abs_difference": report["series"][step - 1]["difference"],
            "max_ulp32": report["series"][step - 1]["ulp32"],
        },
    }


def _frame(steps: int) -> Report:
    names = ("matmul", "conv2d", "exp", "tanh", "log_softmax", "sum", "mean", "norm", "sqrt")
    exact = ("add", "mul", "lerp", "addcmul", "addcdiv", "sigmoid", "avg_pool2d", "dropout")
    kinds = ("float32", "float64")
    operations = {f"{name}.{kind}": False for name in names for kind in kinds}
    operations |= {f"{name}.{kind}": True for name in exact for kind in kinds}
    return {
        "title": "LeNet on Fashion-MNIST", "command": f"bridge demo --steps {steps}",
        "csharp_command": "dotnet run --project csharp/BridgeSharp.Cli -- train lenet",
        "verdict": "incomparable", "reason": "No step was made.", "rule": "float32",
        "dtype": "float64", "steps": steps, "planned_steps": steps, "interrupted": False,
        "error": None, "parameters": 0, "identical": 0, "bit_equal": 0, "bit_equal_float32": 0,
        "max_abs_difference": 0.0, "max_ulp32": 0.0, "first_divergence": None,
        "accuracy": {"python": None, "csharp": None}, "seconds": 0.4 * steps, "host": "isolated",
        "options": {
            "replicas": 2, "batch": 128, "optimizer": "adam", "lr": 0.001, "seed": 0,
            "device": "cpu", "threads": 1,
        },
        "versions": {
            "python": {
                "bridge": "0.1.0", "python": "3.11.2", "torch": "1.13.0a0", "numpy": "1.24.2",
            },
            "csharp": {
                "bridgesharp": "0.1.0", "dotnet": "10.0.12", "torchsharp": "0.107.0",
                "libtorch": "2.10.0", "worker_python": "3.11.2",
            },
        },
        "machine": {"os": "Linux-6.1-x86_64", "cpu": "x86_64", "cores": 2},
        "family": {"same": False, "operations": operations},
        "digest": {"python": "sha256:" + "4f2a" * 16, "csharp": "sha256:" + "91bc" * 16},
        "series": [], "accuracy_series": [], "tensors": [],
    }  # fmt: skip
