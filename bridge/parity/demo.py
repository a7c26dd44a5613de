"""The main job: train both sides, show it, and report the verdict."""

import shlex
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from bridge.dotnet import DotnetError, Host
from bridge.optim import reference
from bridge.parity import family
from bridge.parity.live import LiveView, summary
from bridge.parity.machine import describe, versions
from bridge.parity.report import write
from bridge.parity.twins import Twins, TwinStep
from bridge.parity.verdict import judge
from bridge.recipes import FashionLeNet, Options

EVALUATIONS, EVALUATION_SAMPLES, EVALUATION_DISTANCE = 8, 1000, 25
INTERRUPTED = 130


@dataclass
class Record:
    """What a run has left so far."""

    series: list[dict[str, Any]] = field(default_factory=list)
    accuracy_series: list[dict[str, Any]] = field(default_factory=list)
    accuracy: dict[str, float | None] = field(
        default_factory=lambda: {"python": None, "csharp": None}
    )
    interrupted: bool = False
    error: str | None = None

    def add(self, step: TwinStep) -> None:
        """Note a step."""
        self.series.append(
            {
                "step": step.python.number,
                "python": step.python.loss,
                "csharp": step.csharp.loss,
                "difference": step.max_abs_difference,
                "ulp32": step.max_ulp32,
                "identical": step.identical,
                "seconds": {"python": step.python.seconds, "csharp": step.csharp.seconds},
            }
        )


def demo(host: Host, options: Options, dtype: str | None, out: Path, command: str) -> int:
    """Train LeNet on Fashion-MNIST in Python and in C#, and report whether they are identical.

    Args:
        host: where C# runs.
        options: the job; its dtype counts only where ``dtype`` is given.
        dtype: the element type; None takes float32 where both builds of libtorch give the same
            bits, else float64.
        out: the folder for the report.
        command: how the run was called, for the report.

    Returns:
        0 where the verdict is ``identical``, 130 after Ctrl-C, else 1.

    Spec: R15.1, R15.4, R15.5
    """
    start = time.perf_counter()
    console = Console()
    same = family.compare(host, options.threads)
    rule = family.rule(same)
    chosen = replace(options, dtype=dtype or ("float32" if rule == "bitwise" else "float64"))
    twins = Twins(chosen, host, rule)
    record = Record()
    _introduce(console, twins)
    try:
        _train(twins, record, console)
    except KeyboardInterrupt:
        record.interrupted = True
    except DotnetError as error:
        record.error = str(error)
    report = {
        "title": FashionLeNet.title,
        "command": command,
        "csharp_command": _csharp_command(chosen),
        **judge(twins, record.series, record.error),
        "planned_steps": twins.python.planned_steps,
        "interrupted": record.interrupted,
        "accuracy": record.accuracy,
        "seconds": time.perf_counter() - start,
        "host": "isolated",
        "options": {**asdict(chosen), **chosen.optimizer_options},
        "versions": versions(host),
        "machine": describe(),
        "family": {"same": all(same.values()), "operations": same},
        "digest": _digests(twins, record),
        "series": record.series,
        "accuracy_series": record.accuracy_series,
    }
    host.close()
    files = write(report, out)
    console.print(summary(report, files), soft_wrap=not console.is_terminal)
    if record.interrupted:
        return INTERRUPTED
    return 0 if report["verdict"] == "identical" else 1


def _introduce(console: Console, twins: Twins) -> None:
    """Say what is about to run."""
    options = twins.options
    console.print(
        f"{FashionLeNet.title}: {options.replicas} replicas on {options.device}, batch "
        f"{options.batch}, {options.optimizer}, {options.dtype}, rule {twins.rule}, "
        f"{options.threads} thread(s) a side",
        highlight=False,
        soft_wrap=not console.is_terminal,
    )


def _train(twins: Twins, record: Record, console: Console) -> None:
    """Run every step, and the accuracy now and then and at the end."""
    planned = twins.python.planned_steps
    distance = max(planned // EVALUATIONS, EVALUATION_DISTANCE)
    with LiveView(planned, console) as view:
        for number in range(1, planned + 1):
            step = twins.step()
            record.add(step)
            view.update(
                number,
                step.python.loss,
                step.csharp.loss,
                step.python.samples / step.python.seconds,
                step.csharp.samples / step.csharp.seconds,
                step.max_abs_difference,
                step.identical,
            )
            if number % distance == 0:
                python, csharp = twins.evaluate(EVALUATION_SAMPLES)
                point = {"step": number, "python": python, "csharp": csharp}
                record.accuracy_series.append(point)
        view.note("measures the accuracy on the whole test set")
        python, csharp = twins.evaluate()
    record.accuracy = {"python": python, "csharp": csharp}
    record.accuracy_series.append({"step": planned, **record.accuracy})


def _csharp_command(options: Options) -> str:
    """Write the command that runs the same job in C# alone."""
    given = {**asdict(options), "reference": reference()}
    words = [(f"--{name}", str(value)) for name, value in given.items() if value is not None]
    project = "dotnet run --project csharp/BridgeSharp.Cli -c Release -- train lenet"
    return f"{project} {shlex.join(word for pair in words for word in pair)}"


def _digests(twins: Twins, record: Record) -> dict[str, str | None]:
    """Digest the final states; that of C# is unknown where C# was cut short."""
    digests: dict[str, str | None] = {"python": twins.python.digest(), "csharp": None}
    if not record.interrupted:
        with suppress(DotnetError):
            digests["csharp"] = twins.csharp.digest()
    return digests
