"""Cases through the host: rows of every kind, and what goes wrong."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from bridge.cli import app
from bridge.conformance import Row, Sides, load
from bridge.conformance import known as catalogue
from bridge.conformance.cases import Case
from bridge.conformance.measure import VERDICTS
from bridge.conformance.report import Matrix, write
from bridge.dotnet import IsolatedHost, start
from bridge.parity import family

pytestmark = pytest.mark.parity


@pytest.fixture(scope="module")
def sides(host_folder: Path) -> Iterator[Sides]:
    """Run cases in a host of this module's own, since a case may end it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    both = Sides(lambda: start(host_folder=host_folder))
    yield both
    both.close()
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def one_build(sides: Sides) -> bool:
    """Tell whether both sides are of one build family."""
    return all(family.compare(sides.host, 1).values())


def row(sides: Sides, name: str) -> Row:
    """Run the one case of a name."""
    (case,) = [case for case in load() if case.id == name]
    return sides.row(case)


@pytest.mark.parametrize(
    "name",
    [
        "layers/nn.Linear",
        "layers/nn.BatchNorm2d",
        "layers/nn.LSTM(bidirectional=true)",
        "losses/nn.CrossEntropyLoss(reduction=sum)",
        "functions/nn.functional.pad(pad=[1, 2], mode=circular)",
        "functions/cat",
        "optimizers/optim.SGD(momentum=0.9, weight_decay=0.01)",
        "schedulers/optim.lr_scheduler.StepLR(step_size=7)",
        "initializers/nn.init.kaiming_normal_(mode=fan_out)",
        "draws/randn(dtype=float64, [5, 7])",
        "states/keys",
        "states/loading copies",
    ],
)
def test_sound_cases(sides: Sides, one_build: bool, name: str) -> None:  # noqa: FBT001 - a fixture
    """What TorchSharp has right is equal: bits in one build family, else roundings. Spec: R31.2."""
    found = row(sides, name)
    allowed = ["same bits"] if one_build else ["same bits", "within ulps"]
    assert found.verdict in allowed, found
    assert found.aspects


@pytest.mark.parametrize(
    ("name", "verdict", "message"),
    [
        ("layers/nn.Hardtanh", "differs", ""),
        ("losses/nn.KLDivLoss", "differs", ""),
        ("functions/erfinv", "differs", ""),
        ("optimizers/optim.SGD(maximize=true, weight_decay=0.01)", "differs", ""),
        ("states/a wrong shape that broadcasts", "differs", ""),
        ("functions/linalg.matrix_power", "missing", "no torch.linalg.matrix_power"),
        ("layers/nn.LSTM(proj_size=2)", "missing", "no argument proj_size"),
        ("functions/Tensor.lerp_", "missing", "no overload for"),
        ("layers/nn.LSTMCell(2x3)", "throws", "ExternalException: Input batch size 2"),
        ("draws/normal(0.5, 2.0, [4, 5])", "not run", "takes a span"),
    ],
)
def test_faults_are_rows_with_their_reason(
    sides: Sides, name: str, verdict: str, message: str
) -> None:
    """What differs, is missing, throws or cannot run says so. Spec: R31.3, R31.5."""
    found = row(sides, name)
    assert (found.verdict, found.message[: len(message)]) == (verdict, message) or (
        verdict == "not run" and message in found.message
    )
    assert bool(found.message) == (verdict != "differs")


def test_what_python_cannot_run_is_a_row(sides: Sides) -> None:
    """A name that this PyTorch lacks did not run, and says why. Spec: R31.5."""
    found = sides.row(Case("functions", "no_such", "no_such", "no_such"))
    assert found.verdict == "not run"
    assert found.message.startswith(f"PyTorch {torch.__version__}: AttributeError: ")


def test_a_case_that_ends_the_process_is_a_row(host_folder: Path) -> None:
    """The host is started anew, and the next case runs. Spec: R31.5."""
    hosts: list[IsolatedHost] = []

    def begin() -> IsolatedHost:
        hosts.append(start(host_folder=host_folder))
        return hosts[-1]

    sides = Sides(begin)
    (case,) = load(("functions",), "cat")
    assert sides.row(case).verdict == "same bits"
    os.kill(hosts[0].pid, signal.SIGTERM)
    broken = sides.row(case)
    assert (broken.verdict, broken.message[:21]) == ("throws", "ends the process: it ")
    assert sides.row(case).verdict == "same bits"
    sides.close()
    assert len(hosts) == 2


def test_the_first_of_a_name_is_followed_by_its_arguments(sides: Sides) -> None:
    """Arguments and defaults are one row per name. Spec: R31.4."""
    rows = list(sides.rows(load(("losses",), "nn.KLDivLoss*")))
    signed = [found for found in rows if found.title.endswith(": arguments and defaults")]
    assert [rows.index(found) for found in signed] == [1]
    assert [(a.name, a.python, a.csharp) for a in signed[0].aspects] == [
        ("log_target", "False", "True")
    ]


def test_reports(sides: Sides, tmp_path: Path) -> None:
    """Every row is in all three files, with its values, hint and remedy. Spec: R31.6, R31.7."""
    rows = list(sides.rows(load(("losses",), "nn.KLDivLoss*")))
    matrix = Matrix(rows, catalogue.load(), {"PyTorch": "a <b> | c"}, 1.0)
    page, html, data = (path.read_text(encoding="utf-8") for path in write(matrix, tmp_path))
    report = json.loads(data)
    assert [entry["id"] for entry in report["rows"]] == [found.id for found in rows]
    assert sum(report["counts"]["total"].values()) == len(rows)
    assert list(report["counts"]["total"]) == list(VERDICTS)
    for text in ("log_target: False", "Pass log_target: false"):
        assert text in page
        assert text in html
    assert all(f"`{found.title}`" in page and found.title in html for found in rows)
    assert "a &lt;b> \\| c" in page
    assert "a &lt;b&gt; | c" in html


def test_command(host_folder: Path, tmp_path: Path) -> None:
    """The command shows counts and reasons within 80 columns, and writes the files. Spec: R31.7."""
    assert host_folder.is_dir()
    options = ["--kind", "schedulers", "--only", "*WarmRestarts(T_0=5)", "--output", str(tmp_path)]
    done = CliRunner().invoke(app, ["conformance", *options])
    assert done.exit_code == 0, done.output
    lines = [line for line in done.output.splitlines() if not line.startswith("written: ")]
    assert max(map(len, lines)) <= 80
    assert "no torch.optim.lr_scheduler.CosineAnnealingWarmRestarts" in done.output
    assert len(list(tmp_path.iterdir())) == 3
    printed = CliRunner().invoke(app, ["conformance", *options[:4], "--json"])
    rows = json.loads(printed.output)["rows"]
    assert [entry["verdict"] for entry in rows] == ["missing", "missing"]


def test_command_refuses_what_it_does_not_know() -> None:
    """An unknown kind is bad usage. Spec: R31.7."""
    done = CliRunner().invoke(app, ["conformance", "--kind", "layer"])
    assert done.exit_code == 2
