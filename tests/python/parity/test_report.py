"""What is written of a parity run."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from bridge.parity import plots
from bridge.parity.report import write

Report = dict[str, Any]
MakeReport = Callable[..., Report]


class _Page(HTMLParser):
    """The elements, attributes and text of a page; an element left open is an error."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.pieces: list[str] = []
        self._open: list[str] = []
        self.feed((folder / "report.html").read_text(encoding="utf-8"))
        self.close()
        assert not self._open, f"left open: {self._open}"

    @property
    def text(self) -> str:
        """The text a reader sees, with single spaces."""
        return " ".join(" ".join(self.pieces).split())

    def values(self, *names: str) -> list[str]:
        """The values of the attributes of these names."""
        return [value for name, value in self.attributes if name in names]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.pieces.append(data)


def test_every_kind_of_run_gives_files_that_parse(every_report: Report, tmp_path: Path) -> None:
    """The page closes its elements, the picture is a PNG, the data comes back as it was."""
    page, picture, data = write(every_report, tmp_path / "new" / "folder")
    assert [page.name, picture.name, data.name] == ["report.html", "curves.png", "report.json"]
    assert every_report["verdict"].capitalize() in _Page(page.parent).text
    assert picture.read_bytes().startswith(b"\x89PNG\r\n")
    assert json.loads(data.read_bytes()) == every_report
    assert len(list(page.parent.iterdir())) == 3


def test_numbers_that_are_not_finite(make_report: MakeReport, tmp_path: Path) -> None:
    """They are names in the data, words on the page and gaps in the curves."""
    report = make_report(steps=30, max_abs_difference=math.inf)
    report["series"][20] |= {"python": math.nan, "csharp": -math.inf, "difference": math.inf}
    write(report, tmp_path)
    data = json.loads((tmp_path / "report.json").read_bytes(), parse_constant=pytest.fail)
    point = data["series"][20]
    names = {"python": "NaN", "csharp": "-Infinity", "difference": "Infinity"}
    assert {name: point[name] for name in names} == names
    text = _Page(tmp_path).text
    assert "Largest difference Infinity" in text
    assert "2 values not finite" in text
    first = (tmp_path / "report.html").read_bytes()
    write(data, tmp_path)
    assert (tmp_path / "report.html").read_bytes() == first


def test_page_stands_alone(make_report: MakeReport, tmp_path: Path) -> None:
    """The page refers to nothing outside itself, runs no script, and its ids are its own."""
    write(make_report(steps=60, diverged_at=20), tmp_path)
    page = _Page(tmp_path)
    assert not {"script", "link", "iframe", "img", "object", "base"} & set(page.tags)
    references = page.values("href", "xlink:href", "src", "srcset", "action")
    assert references
    assert all(reference.startswith("#") for reference in references)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text.count("url(") == text.count("url(#")
    assert "@import" not in text
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert {reference[1:] for reference in references} <= set(ids)


def test_hostile_names_stay_text(make_report: MakeReport, tmp_path: Path) -> None:
    """Markup in a name, a title, an option or an error is shown, not obeyed; so is a formula."""
    evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> $x$ {{ 7 * 7 }}"
    report = make_report(
        steps=5, diverged_at=2, title=evil, command=evil, reason=evil, error=evil, host=evil
    )
    report["tensors"][0]["name"] = report["first_divergence"]["parameter"] = evil
    report["options"][evil] = [evil]
    report["family"]["operations"][evil] = False
    write(report, tmp_path)
    page = _Page(tmp_path)
    assert not {"script", "img"} & set(page.tags)
    assert not page.values("onerror")
    assert page.text.count(evil) >= 10


def test_page_names_the_first_divergence(make_report: MakeReport, tmp_path: Path) -> None:
    """A run that diverged says where, by how much, and marks the tensor without colour."""
    write(make_report(steps=40, diverged_at=7), tmp_path)
    text = _Page(tmp_path).text
    assert "First divergence at step 7 in conv1.weight : 2.0e-06, that is 537 ulp32." in text
    assert "first divergence: step 7" in text
    assert "≠ 12 of 180" in text
    assert "all 25,000" in text


def test_page_tells_what_never_moved(make_report: MakeReport, tmp_path: Path) -> None:
    """A trainable tensor that stayed at its start is named; one that is not trained is none."""
    report = make_report(steps=2)
    report["tensors"][0]["moved"], report["tensors"][1]["moved"] = None, False
    write(report, tmp_path)
    assert _Page(tmp_path).text.count("never moved from its start") == 1
    assert "conv1.bias never moved from its start" in _Page(tmp_path).text


@pytest.mark.parametrize(
    ("rule", "shown"), [("bitwise", "0: bit-identical"), ("float32", "0: no difference")]
)
def test_zero_is_drawn_as_zero(
    rule: str, shown: str, make_report: MakeReport, tmp_path: Path
) -> None:
    """A run without any difference has a curve at zero, and the axis says what zero means."""
    report = make_report(steps=20, rule=rule)
    for point in report["series"]:
        point |= {"difference": 0.0, "ulp32": 0.0}
    write(report, tmp_path)
    text = _Page(tmp_path).text
    assert shown in text
    assert ("limit of the rule, 1/64" in text) == (rule == "float32")


def test_data_is_safe_before_anything_is_drawn(
    make_report: MakeReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where drawing fails the data is written, and the older page and picture stay whole."""
    write(make_report(steps=3), tmp_path)
    older = (tmp_path / "report.html").read_bytes()

    def fail(*_: object, **__: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr(plots, "png", fail)
    with pytest.raises(MemoryError):
        write(make_report(steps=4), tmp_path)
    assert json.loads((tmp_path / "report.json").read_bytes())["steps"] == 4
    assert (tmp_path / "report.html").read_bytes() == older
    assert len(list(tmp_path.iterdir())) == 3


def test_matplotlib_is_imported_late() -> None:
    """Importing the report imports neither matplotlib nor torch."""
    code = "import sys, bridge.parity.report; print({'matplotlib', 'torch'} & {*sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
