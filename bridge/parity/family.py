"""Whether two builds of libtorch compute the same bits: one build family."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn import functional

from bridge.dotnet.calls import result
from bridge.dotnet.host import Host
from bridge.parity.compare import Rule
from bridge.parity.digest import digest, dtype_name

Inputs = dict[str, torch.Tensor]

# Any: not every function of torch 1.13 has types.
OPERATIONS: dict[str, Callable[[Inputs], Any]] = {
    "add_alpha": lambda t: t["a"].add(t["b"], alpha=0.3),
    "lerp": lambda t: t["a"].lerp(t["b"], 0.1),
    "addcmul": lambda t: t["a"].addcmul(t["b"], t["b"], value=0.001),
    "addcdiv": lambda t: t["a"].addcdiv(t["b"], t["p"], value=-0.01),
    "sqrt": lambda t: t["p"].sqrt(),
    "exp": lambda t: t["a"].exp(),
    "tanh": lambda t: t["a"].tanh(),
    "sigmoid": lambda t: t["a"].sigmoid(),
    "sum": lambda t: t["a"].sum(),
    "mean": lambda t: t["a"].mean(0),
    "log_softmax": lambda t: functional.log_softmax(t["a"], 1),
    "matmul": lambda t: t["a"].matmul(t["m"]),
    "linear": lambda t: functional.linear(t["a"], t["b"]),
    "conv2d": lambda t: functional.conv2d(t["x"], t["w"]),
    "avg_pool2d": lambda t: functional.avg_pool2d(t["x"], 2),
    "matmul_backward": lambda t: _gradient(t["m"], t["a"].matmul),
    "conv2d_backward": lambda t: _gradient(t["w"], lambda w: functional.conv2d(t["x"], w)),
    "cross_entropy_backward": lambda t: _gradient(
        t["a"], lambda a: functional.cross_entropy(a, t["y"])
    ),
}


def battery() -> dict[str, str]:
    """Run a battery of small operations on fixed inputs and digest each result.

    Two builds whose digests are all equal, at equal threads, are of one build family.

    Returns:
        A SHA-256 for each ``operation.dtype``.

    Spec: R12.1, R12.2
    """
    return {name: digest([(name.partition(".")[0], result)]) for name, result in results().items()}


def results() -> dict[str, torch.Tensor]:
    """Run a battery of small operations on fixed inputs.

    Returns:
        A result for each ``operation.dtype``.

    Spec: R12.1
    """
    return {
        f"{name}.{dtype_name(dtype)}": operation(_inputs(dtype))
        for dtype in (torch.float32, torch.float64)
        for name, operation in OPERATIONS.items()
    }


def rule(same: Mapping[str, bool]) -> Rule:
    """Choose the rule: ``bitwise`` within one build family, else ``float32``.

    Args:
        same: of each operation of the battery, whether both sides gave the same bits.

    Spec: R12.2
    """
    return "bitwise" if all(same.values()) else "float32"


def _inputs(dtype: torch.dtype) -> Inputs:
    """Draw the inputs: odd sizes, so that vector loops have a tail."""
    generator = torch.Generator().manual_seed(20)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float32).to(dtype)

    inputs = {"a": draw(67, 131), "b": draw(67, 131), "m": draw(131, 45)}
    inputs |= {"x": draw(3, 5, 19, 17), "w": draw(7, 5, 3, 3)}
    inputs["p"] = inputs["b"].abs().add(0.5)
    inputs["y"] = torch.arange(67) % 131
    return inputs


def _gradient(
    weight: torch.Tensor, function: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Differentiate the sum of a function's squares by its weight."""
    leaf = weight.clone().requires_grad_()
    output = function(leaf)
    output.mul(output).sum().backward()  # type: ignore[no-untyped-call]
    gradient = leaf.grad
    return leaf if gradient is None else gradient


def compare(host: Host, threads: int) -> dict[str, bool]:
    """Run the battery in Python and in C#, and tell of each operation whether the bits are equal.

    Args:
        host: where C# runs.
        threads: torch's intra-op threads, on both sides.

    Spec: R12.2
    """
    pending = host.submit("family", threads=threads)
    torch.set_num_threads(threads)
    python, csharp = battery(), result(pending)
    return {name: python.get(name) == csharp.get(name) for name in {**python, **csharp}}
