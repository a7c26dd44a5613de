"""Draw the curves of a parity run, for a page and as a picture."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO, StringIO
from typing import Any

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from bridge.parity.palette import LIGHT, STYLE
from bridge.parity.wording import LIMIT_ULP32, verdict

_UNITS_PER_INCH = 72
_FEW_POINTS = 60

_Report = Mapping[str, Any]
_Panel = tuple[int, Callable[[Axes, _Report], None]]


def svg(report: _Report, *, width: int, prefix: str) -> str:
    """Draw the curves as an SVG element whose colours are CSS variables, every id prefixed."""
    text = StringIO()
    with style.context(["default", STYLE]):
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        _figure(report, width).savefig(text, format="svg", transparent=True, metadata=nothing)
    element = text.getvalue()[text.getvalue().index("<svg") :]
    element = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{prefix}-", element)
    for name, colour in LIGHT.items():
        element = element.replace(colour, f"var(--{name})")
    return element


def png(report: _Report, *, width: int) -> bytes:
    """Draw the curves as a PNG picture with the title and the verdict on top."""
    data = BytesIO()
    with style.context(["default", STYLE]):
        figure = _figure(report, width)
        title = f"{report['title']}\n{verdict(report)}"
        figure.suptitle(title, x=0.008, ha="left", parse_math=False, wrap=True)
        figure.savefig(data, format="png", dpi=2 * _UNITS_PER_INCH)
    return data.getvalue()


def _figure(report: _Report, width: int) -> Figure:
    """Lay the panels out one below the other, over the same steps."""
    panels = _panels(report)
    heights = [height for height, _ in panels]
    size = (width / _UNITS_PER_INCH, (sum(heights) + 40) / _UNITS_PER_INCH)
    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(h_pad=0.12))
    rows = figure.subplots(len(panels), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (_, draw) in zip(rows, panels, strict=True):
        draw(axes, report)
        _mark_divergence(axes, report)
    rows[-1].set_xlabel("step")
    rows[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    rows[-1].set_xlim(0, max(report["steps"], 1) * 1.01)
    return figure


def _panels(report: _Report) -> list[_Panel]:
    """Choose what there is to draw, with the height of each panel."""
    if not report["series"]:
        return [(120, _draw_nothing)]
    panels: list[_Panel] = [(250, _draw_loss), (190, _draw_accuracy), (230, _draw_difference)]
    return panels if report["accuracy_series"] else [panels[0], panels[2]]


def _draw_nothing(axes: Axes, _: _Report) -> None:
    """Say that there is nothing to draw."""
    axes.set_title("No step was compared: there is no curve to show")
    axes.set_axis_off()


def _draw_loss(axes: Axes, report: _Report) -> None:
    """Draw the loss of both sides, and the key to the lines."""
    _draw_sides(axes, report["series"], "Training loss")
    axes.legend(
        loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.2, handlelength=1.4
    )


def _draw_accuracy(axes: Axes, report: _Report) -> None:
    """Draw the accuracy of both sides."""
    _draw_sides(axes, report["accuracy_series"], "Accuracy on test samples")
    axes.set_ylim(0, 1)


def _draw_sides(axes: Axes, series: Sequence[_Report], title: str) -> None:
    """Draw C# as a thin dark line inside Python's thick pale one: both show where they meet."""
    at = [point["step"] for point in series]
    python, csharp = _values(series, "python"), _values(series, "csharp")
    dot = "o" if len(series) <= _FEW_POINTS else ""
    thick = {"linewidth": 6, "marker": dot, "markersize": 9, "solid_capstyle": "round"}
    axes.plot(at, python, color=LIGHT["python"], label="Python", **thick)
    axes.plot(
        at, csharp, color=LIGHT["csharp"], label="C#", linewidth=1.2, marker=dot, markersize=3.5
    )
    missing = sum(not math.isfinite(value) for value in python + csharp)
    if missing:
        title += f", {missing} values not finite"
    elif _coincide(python, csharp):
        title += ", both lines coincide"
    axes.set_title(title)


def _draw_difference(axes: Axes, report: _Report) -> None:
    """Draw the measure that the rule judges, with a true zero below its logarithmic scale."""
    by_ulp = report["rule"] == "float32"
    series = report["series"]
    values = _values(series, "ulp32" if by_ulp else "difference")
    drawn = [*values, LIMIT_ULP32] if by_ulp else values
    _scale(axes, [value for value in drawn if math.isfinite(value) and value > 0])
    at = [point["step"] for point in series]
    dot = "o" if len(series) <= _FEW_POINTS else ""
    axes.plot(at, values, color=LIGHT["csharp"], linewidth=1.4, marker=dot, markersize=3.5)
    axes.set_title(f"Difference {'in ulps of float32' if by_ulp else 'of the parameters'}")
    if by_ulp:
        axes.axhline(LIMIT_ULP32, color=LIGHT["limit"], linewidth=1.2, dashes=(6, 3))
        _label(axes, LIMIT_ULP32, "limit of the rule, 1/64", "limit")
    if 0 in values:
        same = [point["identical"] for point in series if not point["difference"]]
        _label(
            axes,
            0,
            f"0: {'no difference' if by_ulp or not all(same) else 'bit-identical'}",
            "muted",
        )


def _scale(axes: Axes, positive: Sequence[float]) -> None:
    """Scale an axis: decades over the positive values, and zero itself below them."""
    lowest = math.floor(math.log10(min(positive, default=1)))
    highest = max(math.ceil(math.log10(max(positive, default=1))), lowest + 1)
    axes.set_yscale("symlog", linthresh=10.0**lowest, linscale=0.2 + 0.12 * (highest - lowest))
    axes.set_ylim(-0.12 * 10.0**lowest, 1.5 * 10.0**highest)
    stride = math.ceil((highest - lowest + 1) / 6)
    decades = [10.0**power for power in range(lowest, highest + 1, stride)] if positive else []
    axes.set_yticks([0, *decades], ["0", *(f"{decade:.0e}" for decade in decades)])
    axes.set_yticks([], minor=True)


def _label(axes: Axes, height: float, text: str, colour: str) -> None:
    """Write a text above a height of the axis, at its right end."""
    axes.annotate(
        text,
        (1, height),
        (0, 4),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        va="bottom",
        color=LIGHT[colour],
    )


def _mark_divergence(axes: Axes, report: _Report) -> None:
    """Mark the step where the sides first differed, where there is one."""
    first = report["first_divergence"]
    if first is None or not report["series"]:
        return
    axes.axvline(first["step"], color=LIGHT["alert"], linewidth=1.2, dashes=(2, 2))
    if axes.get_subplotspec().is_last_row():
        axes.set_title(f"first divergence: step {first['step']}", loc="right", color=LIGHT["alert"])


def _values(series: Sequence[_Report], key: str) -> list[float]:
    """Read one value of each step; what is not finite leaves a gap in the line."""
    values = (float("nan" if point[key] is None else point[key]) for point in series)
    return [value if math.isfinite(value) else math.nan for value in values]


def _coincide(first: Sequence[float], second: Sequence[float]) -> bool:
    """Tell whether two lines look like one."""
    span = max(first) - min(first)
    return all(abs(a - b) <= span / 500 for a, b in zip(first, second, strict=True))
