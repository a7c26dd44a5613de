"""The diagnosis finds a fault, says where it is and what it looks like, and names no other."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bridge.cli import app
from bridge.trace import compare, read
from bridge.trace.diagnosis import diagnose
from tests.python.trace_faults.bed import Loop
from tests.python.trace_faults.table import all_faults, examine


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder in which each healthy loop is recorded once."""
    return tmp_path_factory.mktemp("faults")


@pytest.mark.parametrize("fault", all_faults(), ids=[fault.__name__ for fault in all_faults()])
def test_each_fault_has_its_name_and_no_other(fault: type[Loop], shared: Path) -> None:
    """A fault is detected, found where it is, and named; every other signature stays silent.

    Spec: R35.4, R35.5, R35.6
    """
    row = examine(fault, shared)
    assert row.detected
    assert row.place == fault.at
    assert row.names == [fault.says]
    (item,) = row.findings
    assert item.sentence
    assert item.where
    assert (item.confidence == 0) == (fault.says == "no signature")


def test_there_are_many_faults_and_names() -> None:
    """The test bed has what it promises.

    Spec: R35.4
    """
    faults = all_faults()
    assert len(faults) >= 60
    assert len({fault.says for fault in faults}) >= 45


def test_a_healthy_run_has_no_finding(tmp_path: Path) -> None:
    """Where nothing diverged there is nothing to say.

    Spec: R35.6
    """
    for name in ("a", "b"):
        Loop().run(tmp_path / name)
    a, b = read(tmp_path / "a"), read(tmp_path / "b")
    assert diagnose(compare(a, b), a, b) == []


def test_the_command_prints_and_writes_what_it_looks_like(tmp_path: Path) -> None:
    """``bridge diff`` shows the findings, writes them, and takes an envelope.

    Spec: R35.1, R35.6
    """
    fault = next(f for f in all_faults() if f.__name__ == "Ascent")
    row = examine(fault, tmp_path)
    folders = [str(tmp_path / "Loop" / "reference"), str(tmp_path / "Ascent")]
    options = ["--envelope", str(tmp_path / "Loop"), "--json", str(tmp_path / "diff.json")]
    result = CliRunner().invoke(app, ["diff", *folders, *options])
    assert result.exit_code == 1
    assert "Looks like sign of the gradients (100%): " in result.output
    report = json.loads((tmp_path / "diff.json").read_text(encoding="utf-8"))
    assert report["findings"] == json.loads(json.dumps([item.to_json() for item in row.findings]))
    few = CliRunner().invoke(app, ["diff", *folders, "--envelope", folders[0]])
    assert few.exit_code == 2
