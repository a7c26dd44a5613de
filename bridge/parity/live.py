"""Show a parity run while it runs, and sum it up when it has ended."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import Progress
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bridge.parity import wording

_STYLES = {"identical": "bold green", "diverged": "bold red", "incomparable": "bold yellow"}


class _Step(NamedTuple):
    """What is shown of one step; the pairs are Python and C#."""

    number: int
    losses: tuple[float, float]
    rates: tuple[float, float]
    difference: float


@final
class LiveView:
    """The progress of a parity run: redrawn in place on a terminal, else a line every tenth."""

    def __init__(self, planned_steps: int, console: Console | None = None) -> None:
        """Prepare a view that shows nothing before its `with` block.

        Args:
            planned_steps: the number of steps that the run is to make.
            console: where to show them; standard output where it is None.
        """
        self._console = console or Console()
        self._planned = planned_steps
        self._step: _Step | None = None
        self._diverged_at: int | None = None
        self._tenths_shown = -1
        # Never drawn: it keeps the time, and estimates the rest from the latest speed.
        self._progress = Progress(console=self._console, auto_refresh=False)
        self._task = self._progress.add_task("", start=False, total=planned_steps)
        # FORCE_COLOR makes rich take a pipe for a terminal, so the file is asked as well.
        in_place = self._console.is_interactive and self._console.file.isatty()
        self._live = (
            Live(console=self._console, get_renderable=self._render, refresh_per_second=8)
            if in_place
            else None
        )

    def __enter__(self) -> "LiveView":
        """Start the clock and the view."""
        self._progress.start_task(self._task)
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave the last state in view and give the terminal back as it was."""
        if self._live:
            self._live.stop()

    def update(  # noqa: PLR0913, PLR0917
        self,
        step: int,
        python_loss: float,
        csharp_loss: float,
        python_rate: float,
        csharp_rate: float,
        difference: float,
        identical: bool,  # noqa: FBT001
    ) -> None:
        """Show the latest step.

        Args:
            step: its number, from 1.
            python_loss: the loss in Python.
            csharp_loss: the loss in C#.
            python_rate: samples per second in Python.
            csharp_rate: samples per second in C#.
            difference: the largest difference between the parameters after the step.
            identical: whether the parameters are identical by the rule of the run.
        """
        self._step = _Step(step, (python_loss, csharp_loss), (python_rate, csharp_rate), difference)
        if not identical and self._diverged_at is None:
            self._diverged_at = step
        self._progress.update(self._task, completed=step)
        tenths = 10 * step // max(self._planned, 1)
        if not self._live and tenths > self._tenths_shown:
            self._tenths_shown = tenths
            self.note(self._line(self._step))

    def note(self, text: str) -> None:
        """Show a line that stays, above the view where it is redrawn in place."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=not self._live)

    def _render(self) -> RenderableType:
        """Lay out the view: the bar, the step and the time, both sides, the verdict so far."""
        task = self._progress.tasks[0]
        bar, heading = Table.grid(expand=True), Table.grid(expand=True)
        bar.add_row(ProgressBar(task.total, task.completed))
        heading.add_column()
        heading.add_column(justify="right", style="dim")
        done = self._step.number if self._step else 0
        heading.add_row(f"step {done} of {self._planned}", self._times())
        if not self._step:
            return Group(bar, heading)
        return Group(bar, heading, _sides(self._step), Text(self._state(self._step)))

    def _line(self, step: _Step) -> str:
        """Say the latest step in one line."""
        losses = _pair(wording.ratio, step.losses)
        rates = _pair(_whole, step.rates)
        return (
            f"step {step.number} of {self._planned}: loss {losses}; samples/s {rates}; "
            f"{self._state(step)}; {self._times()}"
        )

    def _state(self, step: _Step) -> str:
        """Say the verdict so far: a run that diverged once stays diverged."""
        at = self._diverged_at
        verdict = "identical so far" if at is None else f"diverged at step {at}"
        return f"{verdict}, difference {wording.magnitude(step.difference)}"

    def _times(self) -> str:
        """Say the time that went by, and the time left once it can be told."""
        task = self._progress.tasks[0]
        elapsed = f"{_clock(task.elapsed or 0)} elapsed"
        return f"{elapsed}, {_clock(task.time_remaining)} left" if task.time_remaining else elapsed


def summary(report: Mapping[str, Any], files: Sequence[Path] = ()) -> Group:
    """Sum a report up in a few lines, the last of which is the verdict.

    Print it with `soft_wrap=True` where the output is no terminal: each line stays one line.

    Args:
        report: what a run found, as `report.schema.json` describes it.
        files: the files that were written of it.
    """
    accuracy = _pair(wording.ratio, (report["accuracy"]["python"], report["accuracy"]["csharp"]))
    total, seconds = report["parameters"], wording.duration(report["seconds"])
    rows = [
        ("accuracy", accuracy),
        ("steps", f"{wording.steps(report)} in {seconds}, host {report['host']}"),
        ("identical", f"{wording.share(report['identical'], total)} parameters"),
        ("same bits", wording.share(report["bit_equal"], total)),
        ("as float32", wording.share(report["bit_equal_float32"], total)),
        *(("error", line) for line in (report["error"] or "").splitlines()),
        *(("written", str(file)) for file in files),
    ]
    lines = [Text.assemble((f"{name:<11}", "dim"), text) for name, text in rows]
    return Group(*lines, Text(wording.verdict(report), style=_STYLES[report["verdict"]]))


def _sides(step: _Step) -> Table:
    """Set both sides of a step one below the other."""
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right", min_width=8)
    table.add_column(justify="right", min_width=9)
    table.add_row("", Text("loss", style="dim"), Text("samples/s", style="dim"))
    for name, loss, rate in zip(("Python", "C#"), step.losses, step.rates, strict=True):
        table.add_row(name, wording.ratio(loss), _whole(rate))
    return table


def _pair(write: Callable[[float], str], values: tuple[float, float]) -> str:
    """Write a value of each side."""
    return f"Python {write(values[0])}, C# {write(values[1])}"


def _whole(number: float) -> str:
    """Write a rate without decimals."""
    return f"{number:,.0f}"


def _clock(seconds: float) -> str:
    """Write a span of time as minutes and seconds, or with hours where there are any."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
