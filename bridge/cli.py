"""The command line."""

import os
import shlex
import sys
from enum import Enum
from pathlib import Path
from typing import NoReturn, Optional

import typer

from bridge import __version__, check_command, convert_command

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
BAD_USAGE = 2
app.command()(check_command.check)
app.command()(check_command.init)
app.command()(convert_command.convert)


class Dtype(str, Enum):
    """The element types that a run can take."""

    float32 = "float32"
    float64 = "float64"


class Optimizer(str, Enum):
    """The optimizers that a run can take."""

    sgd = "sgd"
    adam = "adam"


class Rule(str, Enum):
    """The rules by which two values are identical."""

    bitwise = "bitwise"
    float32 = "float32"


def _version(value: bool) -> None:  # noqa: FBT001 - typer calls it
    if value:
        typer.echo(f"bridge {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(  # noqa: FBT001 - typer reads it
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """A PyTorch training loop and its C# TorchSharp twin, with one meaning."""


@app.command()
def demo(
    epochs: int = typer.Option(1, min=1, help="How often to go through the training data."),
    steps: Optional[int] = typer.Option(
        None, min=1, show_default=False, help="Stop after so many steps."
    ),
    replicas: int = typer.Option(2, min=1, help="Replicas on each side."),
    batch: int = typer.Option(128, min=1, help="Samples per step, over all replicas."),
    dtype: Optional[Dtype] = typer.Option(
        None,
        show_default=False,
        help="Element type [default: float32 where both builds agree, else float64].",
    ),
    optimizer: Optimizer = typer.Option(
        Optimizer.adam, show_default=False, help="Optimizer [default: adam]."
    ),
    lr: Optional[float] = typer.Option(
        None, show_default=False, help="Learning rate [default: 0.001 for adam, 0.05 for sgd]."
    ),
    seed: int = typer.Option(0, min=0, help="Of the weights and the order of the samples."),
    device: str = typer.Option("cpu", help="cpu, cuda (a GPU per replica), or cuda:0."),
    data: Optional[Path] = typer.Option(
        None,
        show_default=False,
        help="Folder of the Fashion-MNIST files [default: Debian's package].",
    ),
    threads: Optional[int] = typer.Option(
        None, min=1, show_default=False, help="Threads of each side [default: half of the cores]."
    ),
    out: Path = typer.Option(Path("out/demo"), help="Folder for the report."),
) -> None:
    """Train LeNet on Fashion-MNIST in Python and in C#, and prove that they are identical.

    Exit code 0: identical. 1: diverged, or the run failed. 2: bad usage. 130: interrupted.
    """
    threads = threads or max(1, (os.cpu_count() or 2) // 2)
    # OpenBLAS has threads of its own, which torch does not govern; it reads this when it is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(threads))
    from bridge.dotnet import DotnetError, start  # noqa: PLC0415 - torch takes a second
    from bridge.parity.demo import demo as run  # noqa: PLC0415
    from bridge.recipes import Options  # noqa: PLC0415

    try:
        options = Options(
            data=None if data is None else str(data.absolute()),
            epochs=epochs,
            steps=steps,
            replicas=replicas,
            batch=batch,
            optimizer=optimizer.value,
            lr=lr,
            seed=seed,
            device=device,
            threads=threads,
        )
        with start() as host:
            command = shlex.join(["bridge", *sys.argv[1:]])
            code = run(host, options, dtype and dtype.value, out, command)
    except DotnetError as error:
        _fail(error, 1)
    except (ValueError, FileNotFoundError) as error:
        _fail(error, BAD_USAGE)
    raise typer.Exit(code)


@app.command()
def bench(
    rounds: int = typer.Option(30, min=1, help="How often each way to train runs."),
    threads: Optional[int] = typer.Option(
        None, min=1, show_default=False, help="Threads of each side [default: all cores]."
    ),
    out: Path = typer.Option(Path("out/bench"), help="Folder for the report."),
) -> None:
    """Measure training steps in Python and in C# side by side, as ratios in one run."""
    threads = threads or os.cpu_count() or 1
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(threads))
    from bridge.bench import bench as run  # noqa: PLC0415 - torch takes a second
    from bridge.dotnet import DotnetError, start  # noqa: PLC0415

    try:
        with start() as host:
            run(host, rounds, threads, out)
    except DotnetError as error:
        _fail(error, 1)


@app.command()
def example(
    name: str = typer.Argument(
        ..., help="manual_loop, from_scratch, data_parallel or variable_length."
    ),
    steps: int = typer.Option(20, min=1, help="How many steps it trains."),
    replicas: int = typer.Option(2, min=1, help="How many replicas, or parts."),
    seed: int = typer.Option(0, min=0, help="Of the weights and the data."),
    dtype: Dtype = typer.Option(Dtype.float32.value, help="Element type."),
) -> None:
    """Run one of the example systems in Python; docs/examples.md tells what each shows."""
    from bridge.examples import Setting, find  # noqa: PLC0415 - torch takes a second

    try:
        run = find(name)
    except ValueError as error:
        _fail(error, BAD_USAGE)
    setting = Setting(steps=steps, replicas=replicas, seed=seed, dtype=dtype.value)
    for key, value in run(setting, typer.echo).numbers.items():
        typer.echo(f"{key:<28}{value:.6g}")


@app.command()
def conformance(
    kind: list[str] = typer.Option([], help="Kind of cases, again for several [default: all]."),
    only: Optional[str] = typer.Option(
        None, show_default=False, help="Pattern of names, such as '*Conv*'."
    ),
    as_json: bool = typer.Option(  # noqa: FBT001 - typer reads it
        False, "--json", help="Print JSON."
    ),
    output: Optional[Path] = typer.Option(
        None, show_default=False, help="Folder for the matrix in Markdown, HTML and JSON."
    ),
    threads: int = typer.Option(1, min=1, help="Threads of each side."),
) -> None:
    """Run TorchSharp's own layers, functions and optimizers against PyTorch's, case by case.

    Exit code 0: all cases have run, whatever they found. 1: C# did not start. 2: bad usage.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(threads))
    from bridge.conformance.command import conformance as run  # noqa: PLC0415 - torch takes a second
    from bridge.dotnet import DotnetError  # noqa: PLC0415

    try:
        run(tuple(kind), only, output, as_json=as_json, threads=threads)
    except DotnetError as error:
        _fail(error, 1)
    except ValueError as error:
        _fail(error, BAD_USAGE)


@app.command()
def doctor(
    as_json: bool = typer.Option(  # noqa: FBT001 - typer reads it
        False, "--json", help="Print JSON."
    ),
    threads: int = typer.Option(1, min=1, help="Threads of the battery, on each side."),
) -> None:
    """Look at what both sides need, whether bits can be equal, and how to mend what is missing.

    Exit code 0: usable. 1: something needed is missing.
    """
    from bridge.doctor.command import doctor as run  # noqa: PLC0415 - torch takes a second
    from bridge.dotnet import DotnetError  # noqa: PLC0415

    try:
        code = run(as_json=as_json, threads=threads)
    except DotnetError as error:
        _fail(error, 1)
    raise typer.Exit(code)


@app.command()
def diff(
    reference: Path = typer.Argument(..., help="Folder of a trace."),
    port: Path = typer.Argument(..., help="Folder of the trace to compare with it."),
    rule: Rule = typer.Option(Rule.bitwise.value, help="When two values are identical."),
    name: list[str] = typer.Option(
        [], help="A layer or parameter that the port calls otherwise: REFERENCE=PORT."
    ),
    strict: bool = typer.Option(False, "--strict", help="Exit with 1 for equivalent too."),  # noqa: FBT001
    json: Optional[Path] = typer.Option(None, show_default=False, help="Write the outcome here."),
    envelope: list[Path] = typer.Option(
        [],
        help="A trace of the reference with every weight moved by one ulp, or a folder of such; "
        "at least five.",
    ),
) -> None:
    """Compare two recorded traces, name the first record that differs, and what it looks like.

    Exit code 0: identical or equivalent. 1: diverged. 2: incomparable, or bad usage.
    """
    from bridge.trace import compare, read  # noqa: PLC0415 - numpy takes a moment
    from bridge.trace.diagnosis import diagnose  # noqa: PLC0415
    from bridge.trace.envelope import envelope_of  # noqa: PLC0415
    from bridge.trace.text import save, show  # noqa: PLC0415

    try:
        names = dict(_renaming(text) for text in name)
        a, b = read(reference), read(port)
        noise = envelope_of(a, envelope) if envelope else None
        outcome = compare(a, b, rule=rule.value, names=names, envelope=noise)
        findings = diagnose(outcome, a, b, names)
    except (ValueError, OSError) as error:
        _fail(error, BAD_USAGE)
    show(outcome, findings=findings)
    if json is not None:
        save(outcome, json, findings)
    raise typer.Exit(outcome.exit_code(strict=strict))


def _renaming(text: str) -> tuple[str, str]:
    """Read ``REFERENCE=PORT``."""
    own, sign, other = text.partition("=")
    if not (own and sign and other):
        message = f"diff: expected --name REFERENCE=PORT, got {text}"
        raise ValueError(message)
    return own, other


def _fail(error: Exception, code: int) -> NoReturn:
    """Say what went wrong, in one place, and end."""
    typer.echo(f"error: {error}", err=True)
    raise typer.Exit(code) from None


def main() -> None:
    """Run the command line."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
