"""What is shown while a parity run runs, and when it has ended."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from bridge.parity.live import LiveView, summary

MakeReport = Callable[..., dict[str, Any]]
SHOW_CURSOR, HIDE_CURSOR = "\x1b[?25h", "\x1b[?25l"


class _Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def _terminal(width: int = 80) -> tuple[Console, _Terminal]:
    stream = _Terminal()
    environ = {"TERM": "xterm-256color"}
    console = Console(file=stream, width=width, height=24, force_terminal=True, _environ=environ)
    return console, stream


def _pipe(**environ: str) -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, _environ=environ), stream


def _run(view: LiveView, steps: int, diverged_at: int | None = None) -> None:
    for step in range(1, steps + 1):
        same = diverged_at != step
        view.update(step, 2.3, float("nan") if step == 3 else 2.3, 1234.5, 987.6, 1e-16, same)


def _interrupted_run(console: Console, error: type[BaseException]) -> None:
    with LiveView(40, console) as view:
        _run(view, 3)
        raise error


def _plain(text: str) -> str:
    """Drop the control codes; what is drawn over a line counts as a line of its own."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n")


@pytest.mark.parametrize("environ", [{}, {"FORCE_COLOR": "1"}, {"NO_COLOR": "1", "TERM": "dumb"}])
def test_pipe_gets_a_line_every_tenth(environ: dict[str, str]) -> None:
    """Without a terminal the first step and every tenth of the run is one line of plain text."""
    console, stream = _pipe(**environ)
    with LiveView(469, console) as view:
        view.note("accuracy [bold]0.5[/bold]")
        _run(view, 469, diverged_at=100)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "accuracy [bold]0.5[/bold]"
    steps = [int(line.split()[1]) for line in lines[1:]]
    assert steps == [1, 47, 94, 141, 188, 235, 282, 329, 376, 423, 469]
    assert "\x1b" not in stream.getvalue()
    assert lines[1].startswith(
        "step 1 of 469: loss Python 2.3000, C# 2.3000; samples/s Python 1,234, C# 988; "
        "identical so far, difference 1.0e-16; 0:00 elapsed"
    )
    assert "identical so far" in lines[3]
    assert all("diverged at step 100" in line for line in lines[4:])


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_short_runs(steps: int) -> None:
    """A run of no step shows nothing; a short one shows each step."""
    console, stream = _pipe()
    with LiveView(steps, console) as view:
        _run(view, steps)
    assert len(stream.getvalue().splitlines()) == steps


@pytest.mark.parametrize("width", [80, 40])
def test_terminal_shows_both_sides_within_its_width(width: int) -> None:
    """On a terminal the last state stays in view: step, time, loss, rate, difference, verdict."""
    console, stream = _terminal(width)
    with LiveView(40, console) as view:
        _run(view, 30)
        view.note("accuracy after 30 steps: Python 0.7012, C# 0.7012")
    text = _plain(stream.getvalue())
    assert max(cell_len(line) for line in text.splitlines()) <= width
    last = text[text.rindex("step 30 of 40") :]
    assert re.search(r"0:\d\d elapsed", last)
    assert re.search(r"Python +2\.3000 +1,234", last)
    assert re.search(r"C# +2\.3000 +988", last)
    assert "identical so far, difference 1.0e-16" in last
    assert "accuracy after 30 steps" in text


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_terminal_is_restored(error: type[BaseException]) -> None:
    """An interrupt or an error passes through, and the cursor comes back."""
    console, stream = _terminal()
    with pytest.raises(error):
        _interrupted_run(console, error)
    text = stream.getvalue()
    assert HIDE_CURSOR in text
    assert text.rindex(SHOW_CURSOR) > text.rindex(HIDE_CURSOR)
    assert "NaN" in text


def test_summary_ends_with_the_verdict(make_report: MakeReport) -> None:
    """Into a pipe every line stays one line, the verdict is the last, the files are listed."""
    console, stream = _pipe()
    path = Path("a-very-long-folder-name" * 6) / "report.html"
    console.print(summary(make_report(steps=469), [path]), soft_wrap=True)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "accuracy   Python 0.8416, C# 0.8416"
    assert lines[1] == "steps      469 steps in 187.6 s, host isolated"
    assert lines[2] == "identical  all 129,068 parameters"
    assert f"written    {path}" in lines
    assert lines[-1] == (
        "identical: 129,068 parameters by rule float32, "
        "largest difference 2.2e-15 (5.8e-07 ulp32) after 469 steps"
    )


@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize(
    "options", [{"steps": 40, "diverged_at": 7}, {"steps": 0, "error": "one\n[bold]two"}]
)
def test_summary_fits(width: int, options: dict[str, Any], make_report: MakeReport) -> None:
    """On a terminal the summary wraps within its width, and says a failure as it is."""
    console, stream = _terminal(width)
    report = make_report(**options)
    console.print(summary(report))
    text = _plain(stream.getvalue())
    assert max(cell_len(line.rstrip()) for line in text.splitlines()) <= width
    assert report["verdict"] in text
    assert (report["error"] is None) or "[bold]two" in text


def test_summary_without_colour_says_the_same(make_report: MakeReport) -> None:
    """NO_COLOR takes the colour away and not a word."""
    console, stream = _pipe(NO_COLOR="1", FORCE_COLOR="1")
    console.print(summary(make_report(steps=20, diverged_at=3)), soft_wrap=True)
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", stream.getvalue())
    assert "diverged at step 3 in conv1.weight" in _plain(stream.getvalue())
