"""The benchmark: training steps side by side in one run, as ratios."""

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.nn import functional

from bridge.dotnet import Host
from bridge.models import MLP, LeNet
from bridge.parallel import Trainer, average, replicate, scatter
from bridge.trace import Recorder

Step = Callable[[], object]
LR, WARM_UP = 0.01, 3


class Wide(nn.Sequential):
    """A perceptron of ten million parameters."""

    def __init__(self) -> None:
        """Make the layers."""
        sizes = (1024, 2048, 2048, 1792, 10)
        layers = [nn.Linear(*pair) for pair in pairwise(sizes)]
        super().__init__(*[part for layer in layers for part in (layer, nn.ReLU())][:-1])


@dataclass(frozen=True)
class Workload:
    """A model and one batch for it."""

    name: str
    model: type[nn.Module]
    inputs: torch.Tensor
    targets: torch.Tensor


def bench(host: Host, rounds: int, threads: int, out: Path) -> None:
    """Measure one training step of each way to train, and print and write the ratios.

    Every round runs each way once, in turn; a ratio is the median over the rounds of a way's time
    by that of one undivided model in the same round, so that noise hits both.

    Args:
        host: where C# runs.
        rounds: how often each way runs.
        threads: torch's intra-op threads, on both sides.
        out: the folder for ``report.json``.
    """
    torch.set_num_threads(threads)
    console = Console()
    table = Table("workload", "way", "ms", "ratio", title=f"One training step, {threads} thread(s)")
    rows: list[dict[str, object]] = []
    for workload in _workloads():
        with ExitStack() as stack:
            times = _measure(_ways(workload, host, threads, stack), rounds)
        base = times["plain loop"]
        for way, seconds in times.items():
            ratio = statistics.median(a / b for a, b in zip(seconds, base, strict=True))
            median = 1000 * statistics.median(seconds)
            rows.append({"workload": workload.name, "way": way, "ms": median, "ratio": ratio})
            table.add_row(workload.name, way, f"{median:.1f}", f"{ratio:.2f}")
    out.mkdir(parents=True, exist_ok=True)
    report = {"rounds": rounds, "threads": threads, "torch": torch.__version__, "rows": rows}
    (out / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    console.print(table)


def _workloads() -> list[Workload]:
    """Make the batches."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    return [
        Workload("MLP, batch 128", MLP, draw(128, 1024), torch.arange(128) % 10),
        Workload("wide MLP, batch 128", Wide, draw(128, 1024), torch.arange(128) % 10),
        Workload("LeNet, batch 256", LeNet, draw(256, 1, 28, 28), torch.arange(256) % 10),
    ]


def _ways(workload: Workload, host: Host, threads: int, stack: ExitStack) -> dict[str, Step]:
    """List the ways to train, the plain loop first."""
    ways: dict[str, Step] = {"plain loop": _plain(workload), "traced": _traced(workload, stack)}
    if workload.model is Wide:
        return ways
    ways["manual loop"] = _manual(workload)
    for replicas in (1, 2):
        model = workload.model()
        optimizer = torch.optim.SGD(model.parameters(), LR)
        trainer = Trainer(model, optimizer, functional.cross_entropy, ["cpu"] * replicas)
        port = host.trainer(
            f"BridgeSharp.Models.{workload.model.__name__}",
            lr=LR,
            replicas=replicas,
            threads=threads,
        )
        name = f"{replicas} replica{'s' if replicas > 1 else ''}"
        ways[f"bridge, {name}"] = partial(trainer.step, workload.inputs, workload.targets)
        ways[f"C# from Python, {name}"] = partial(port.step, workload.inputs, workload.targets)
    return ways


def _plain(workload: Workload) -> Step:
    """Train one undivided model as PyTorch's tutorials do."""
    model = workload.model()
    optimizer = torch.optim.SGD(model.parameters(), LR)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        _backward(model, workload.inputs, workload.targets)
        optimizer.step()

    return step


def _traced(workload: Workload, stack: ExitStack) -> Step:
    """Train as the plain loop does, and record everything."""
    model = workload.model()
    optimizer = torch.optim.SGD(model.parameters(), LR)
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    trace = stack.enter_context(Recorder(folder, model, optimizer))

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        trace.inputs(workload.inputs, workload.targets)
        loss = functional.cross_entropy(model(workload.inputs), workload.targets)
        trace.loss(loss)
        loss.backward()  # type: ignore[no-untyped-call]
        trace.gradients()
        optimizer.step()
        trace.step()

    return step


def _manual(workload: Workload) -> Step:
    """Train two replicas by hand: a loop over them, averaged gradients, ``load_state_dict``."""
    replicas = replicate(workload.model(), ["cpu", "cpu"])
    optimizer = torch.optim.SGD(replicas[0].parameters(), LR)

    def step() -> None:
        for replica in replicas:
            replica.zero_grad(set_to_none=True)
        shards = scatter((workload.inputs, workload.targets), ["cpu", "cpu"])
        for replica, (inputs, targets) in zip(replicas, shards, strict=True):
            _backward(replica, inputs, targets)
        average(replicas)
        optimizer.step()
        replicas[1].load_state_dict(replicas[0].state_dict())

    return step


def _backward(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> None:
    """Compute the gradients of a batch."""
    loss = functional.cross_entropy(model(inputs), targets)
    loss.backward()  # type: ignore[no-untyped-call]


def _measure(ways: dict[str, Step], rounds: int) -> dict[str, list[float]]:
    """Time every way in turn, round after round."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(-WARM_UP, rounds):
        for name, step in ways.items():
            start = time.perf_counter()
            step()
            if number >= 0:
                times[name].append(time.perf_counter() - start)
    return times
