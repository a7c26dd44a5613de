"""Checks of a healthy port and of faulty ones."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import bridge.dotnet
from bridge import parity as package
from bridge.check import Config, ConfigError, Result, check, files, load, text
from bridge.pytest_plugin import assert_parity

HERE = Path(__file__).parent
Check = Callable[..., Result]


def base(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - values of TOML
    """Return a configuration with a generated batch for each of three steps."""
    return {
        "reference": {"module": "reference_code:Mlp", "args": [4]},
        "port": {"assembly": "Port.dll", "type": "PortCode.Mlp", "args": {"hidden": 4}},
        "optimizer": {"name": "sgd", "lr": 0.1},
        "data": {"shape": [4], "classes": 4},
        "dtype": "float64",
        "steps": 3,
        **changes,
    }


@pytest.fixture(scope="session")
def port(host_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the ports."""
    dotnet = shutil.which("dotnet")
    if dotnet is None:
        pytest.skip("no dotnet command on PATH to build a user's library with")
    project = tmp_path_factory.mktemp("port") / "code"
    shutil.copytree(HERE / "port_code", project)
    command = [dotnet, "build", "-c", "Release", "-o", "out", f"-p:HostFolder={host_folder}"]
    quiet = ["-nodeReuse:false", "-p:UseSharedCompilation=false", "-v:quiet"]
    built = subprocess.run(
        [*command, *quiet], cwd=project, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout
    return project / "out" / "PortCode.dll"


@pytest.fixture
def run(shared_host: bridge.dotnet.IsolatedHost, port: Path) -> Check:
    """Check a port by the name of its type."""

    def of(kind: str, **changes: Any) -> Result:  # noqa: ANN401 - values of TOML
        table = {"assembly": str(port), "type": f"PortCode.{kind}", "args": {"hidden": 4}}
        return check(base(port=table, **changes), HERE, host=shared_host)

    return of


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"replicas": 2, "optimizer": {"name": "adam", "lr": 0.01}},
        {"scheduler": {"name": "StepLR", "step_size": 1, "gamma": 0.5}},
        {"loss": {"reference": "reference_code:half", "port": "PortCode.Losses.Half"}},
        {"mode": "forward"},
    ],
    ids=["plain", "replicas", "scheduler", "own loss", "forward"],
)
def test_healthy_port_is_identical(run: Check, changes: dict[str, Any]) -> None:
    """A port without a fault is identical. Spec: R34.2, R34.3."""
    result = run("Mlp", **changes)
    assert result.verdict == "identical", text.render(result)
    assert result.exit_code(strict=True) == 0
    assert result.outcome is not None
    assert result.outcome.records > 30


def test_wrong_activation_is_located(run: Check) -> None:
    """The values at the first divergence come from whole tensors. Spec: R34.3."""
    result = run("WrongActivation")
    assert result.verdict == "diverged"
    assert result.outcome is not None
    assert result.outcome.first is not None
    first = result.outcome.first.record
    assert (first.step, first.phase, first.replica) == (0, "forward", 0)
    assert result.values is not None
    assert result.values.reference != result.values.port
    assert "Largest difference at" in text.render(result)


def test_formula_an_ulp_off_is_equivalent(run: Check) -> None:
    """What stays inside the noise envelope is equivalent; strict refuses it. Spec: R34.7."""
    result = run("OtherFormula", dtype="float32", steps=6)
    assert result.verdict == "equivalent", text.render(result)
    assert (result.exit_code(), result.exit_code(strict=True)) == (0, 1)
    assert "inside the noise envelope" in result.reason


def test_healthy_float32_port_is_no_fault(run: Check) -> None:
    """Builds that differ train alike but for rounding, float32 included. Spec: R34.7."""
    result = run("Mlp", dtype="float32", steps=10, optimizer={"name": "adam", "lr": 0.01})
    assert result.verdict in {"identical", "equivalent"}, text.render(result)


def test_small_fault_is_outside_the_envelope(run: Check) -> None:
    """A fault of a thousandth is no rounding, in float32 either. Spec: R34.7."""
    result = run("SlightlyOff", dtype="float32")
    assert result.verdict == "diverged"
    assert result.outcome is not None
    assert result.outcome.first is not None
    first = result.outcome.first.record
    assert (first.step, first.phase) == (0, "forward")


def test_missing_bias_ends_the_preflight(run: Check) -> None:
    """A name without a counterpart is an error, and nothing is trained. Spec: R34.2."""
    result = run("MissingBias")
    assert result.verdict == "diverged"
    assert result.outcome is None
    assert "fc1.bias" in result.reason


def test_transposed_weight_is_located(run: Check) -> None:
    """A weight that is used transposed shows in the first forward. Spec: R34.3."""
    result = run("Transposed")
    assert result.outcome is not None
    assert result.outcome.first is not None
    record = result.outcome.first.record
    assert (result.verdict, record.step, record.phase) == ("diverged", 0, "forward")


@pytest.mark.parametrize(
    ("kind", "words"), [("Throws", "no activation"), ("Unmade", "Unmade: no layers")]
)
def test_exception_on_one_side_is_a_divergence(run: Check, kind: str, words: str) -> None:
    """An exception in C# is a divergence with its message and its place. Spec: R34.3."""
    result = run(kind)
    assert result.verdict == "diverged"
    assert words in result.reason
    assert "\n" not in result.reason
    assert "Ports.cs" in text.render(result)


def test_other_names_are_matched_by_shape_and_order(run: Check) -> None:
    """The names that were matched are told, and the run is identical. Spec: R34.2."""
    result = run("Renamed")
    assert result.verdict == "identical", text.render(result)
    assert result.names["fc1.weight"] == "first.weight"
    assert any("taken for" in finding.message for finding in result.findings)


def test_reports_say_the_same(run: Check, tmp_path: Path) -> None:
    """JSON, JUnit and HTML say what the text does. Spec: R34.4."""
    result = run("WrongActivation")
    assert json.loads(json.dumps(result.to_json()))["verdict"] == "diverged"
    files.junit(result, tmp_path / "junit.xml")
    suite = ET.parse(tmp_path / "junit.xml").getroot()  # noqa: S314 - it is our own
    assert suite.attrib["failures"] == "1"
    files.html(result, tmp_path / "report.html")
    assert "diverged" in (tmp_path / "report.html").read_text(encoding="utf-8")
    thrown = run("Throws")
    files.html(thrown, tmp_path / "thrown.html")
    assert "Ports.cs" in (tmp_path / "thrown.html").read_text(encoding="utf-8")
    assert "Ports.cs" in json.dumps(thrown.to_json())


def test_assert_parity_fails_with_the_report(
    shared_host: bridge.dotnet.IsolatedHost, port: Path
) -> None:
    """The message of the failure is the report. Spec: R34.5."""
    table = {"assembly": str(port), "type": "PortCode.MissingBias", "args": [4]}
    with pytest.raises(AssertionError, match=r"Preflight error: names: parameter fc1\.bias"):
        assert_parity(base(port=table), HERE, host=shared_host)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"replica": 2}, "replica"),
        ({"steps": 0}, "steps"),
        ({"steps": True}, "steps"),
        ({"dtype": "float16"}, "dtype"),
        ({"reference": {"module": "Mlp"}}, "reference.module"),
        ({"port": {"type": "A"}}, "port.assembly"),
        ({"optimizer": {"lr": 1.0}}, "optimizer.name"),
        ({"reference": {"command": "true"}}, "command"),
    ],
)
def test_bad_configuration_names_the_key(changes: dict[str, Any], key: str) -> None:
    """An error of the configuration names its key. Spec: R34.1."""
    with pytest.raises(ConfigError) as info:
        load(base(**changes))
    assert info.value.key == key


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is of Python 3.11")
def test_file_is_read_and_paths_are_relative_to_it(tmp_path: Path) -> None:
    """Paths in a file are relative to the file. Spec: R34.1."""
    (tmp_path / "port.toml").write_text(
        'data = "batches.npz"\n[reference]\nmodule = "m:C"\n'
        '[port]\nassembly = "bin/P.dll"\ntype = "P"\n',
        encoding="utf-8",
    )
    config = load(tmp_path / "port.toml")
    assert isinstance(config, Config)
    assert config.port["assembly"] == str(tmp_path / "bin/P.dll")


def test_programs_that_record(tmp_path: Path) -> None:
    """A command for each side records a trace into the folder that it is told. Spec: R34.1."""
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    root = HERE.parents[2]

    def command(rate: float) -> dict[str, str]:
        return {"command": f"PYTHONPATH='{root}' '{sys.executable}' program.py {rate}"}

    same = check({"reference": command(0.1), "port": command(0.1)}, tmp_path)
    assert same.verdict == "identical", same.reason
    other = check({"reference": command(0.1), "port": command(0.2)}, tmp_path)
    assert other.outcome is not None
    assert other.outcome.first is not None
    assert (other.verdict, other.outcome.first.record.phase) == ("diverged", "init")


def test_package_has_the_check() -> None:
    """``bridge.parity.check`` is the same function. Spec: R34.4."""
    assert package.check is check


PROGRAM = """
import os, sys
import torch
import bridge
torch.manual_seed(0)
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=float(sys.argv[1]))
with bridge.trace(os.environ["BRIDGE_TRACE_FOLDER"], model, optimizer) as trace:
    inputs = torch.randn(4, 3)
    trace.inputs(inputs)
    loss = model(inputs).square().mean()
    trace.loss(loss)
    optimizer.zero_grad()
    loss.backward()
    trace.gradients()
    optimizer.step()
    trace.step()
"""
