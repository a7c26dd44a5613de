"""The demo, run as a user runs it."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bridge.parity.compare import Rule

pytestmark = pytest.mark.parity

ROOT = Path(__file__).parents[3]
LIMIT = 120


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command line to its end."""
    command = [sys.executable, "-m", "bridge", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False
    )


def report(folder: Path) -> dict[str, Any]:
    """Read the report of a run."""
    content: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return content


def test_demo_proves_parity(small_data: Path, tmp_path: Path, rule: Rule) -> None:
    """A healthy run ends identical with exit code 0 and a whole report. Spec: R15.4, R15.5."""
    done = run("demo", "--data", str(small_data), "--batch", "4", "--out", str(tmp_path / "o"))
    assert done.returncode == 0, done.stdout + done.stderr
    result = report(tmp_path / "o")
    assert result["verdict"] == "identical"
    assert result["rule"] == rule
    assert result["steps"] == 3
    assert result["identical"] == result["parameters"] == 129_068
    assert result["first_divergence"] is None
    assert result["accuracy"]["python"] == result["accuracy"]["csharp"]
    assert all(tensor["moved"] for tensor in result["tensors"])
    assert {"report.html", "report.json", "curves.png"} == {
        file.name for file in (tmp_path / "o").iterdir()
    }
    assert done.stdout.strip().splitlines()[-1].startswith("identical: 129,068 parameters")


def test_csharp_alone_leaves_the_same_digest(small_data: Path, tmp_path: Path) -> None:
    """The command that the report names trains C# alone to the same parameters. Spec: R14.2."""
    done = run("demo", "--data", str(small_data), "--batch", "4", "--out", str(tmp_path / "o"))
    assert done.returncode == 0, done.stdout + done.stderr
    result = report(tmp_path / "o")
    command = shlex.split(result["csharp_command"])
    assert command[:3] == ["dotnet", "run", "--project"]
    alone = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert alone.returncode == 0, alone.stdout + alone.stderr
    lines = dict(line.split(maxsplit=1) for line in alone.stdout.splitlines()[-2:])
    assert lines["digest"] == result["digest"]["csharp"]
    assert float(lines["accuracy"]) == round(result["accuracy"]["csharp"], 4)


def test_drift_is_shown(small_data: Path, tmp_path: Path, rule: Rule) -> None:
    """In float32 two build families drift: the verdict says so, with exit code 1. Spec: R15.5."""
    if rule == "bitwise":
        pytest.skip("one build family: float32 gives the same bits on both sides")
    arguments = ["--data", str(small_data), "--dtype", "float32", "--out", str(tmp_path)]
    done = run("demo", *arguments)
    assert done.returncode == 1, done.stdout + done.stderr
    result = report(tmp_path)
    assert result["verdict"] == "diverged"
    assert result["first_divergence"]["step"] == 1
    assert result["first_divergence"]["parameter"]
    assert result["identical"] < result["parameters"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "0"], "--steps"),
        (["--dtype", "float16"], "float16"),
        (["--optimizer", "lion"], "lion"),
        (["--lr", "-1"], "expected lr above 0, got -1.0"),
        (["--device", "tpu"], "expected a device such as cpu or cuda:0, got tpu"),
        (["--data", "nowhere"], "dataset-fashion-mnist"),
        (["--colour", "blue"], "--colour"),
    ],
)
def test_bad_usage(arguments: list[str], message: str, tmp_path: Path) -> None:
    """A wrong option ends with exit code 2 and says what is wrong. Spec: R14.1, R10.3."""
    done = run("demo", *arguments, "--out", str(tmp_path / "o"))
    assert done.returncode == 2, done.stdout + done.stderr
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "o").exists()


def test_damaged_data_is_refused_by_name(small_data: Path, tmp_path: Path) -> None:
    """A file cut short is named, and nothing is trained. Spec: R10.2."""
    file = small_data / "train-labels-idx1-ubyte"
    file.write_bytes(file.read_bytes()[:-1])
    done = run("demo", "--data", str(small_data), "--out", str(tmp_path / "o"))
    assert done.returncode == 2
    assert "expected 18 bytes in train-labels-idx1-ubyte (10), got 17" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_ctrl_c_leaves_a_report_and_no_process(small_data: Path, tmp_path: Path) -> None:
    """Ctrl-C ends both sides at once, with the report of what ran. Spec: R15.5, R16.4."""
    options = ["--epochs", "100000", "--batch", "4", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "bridge", "demo", "--data", str(small_data), *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while not process.stdout.readline().startswith("step 1 of"):
            assert process.poll() is None
        workers = children(process.pid)
        assert workers
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(LIMIT) == 130
    result = report(tmp_path)
    assert result["interrupted"] is True
    assert 1 <= result["steps"] < result["planned_steps"]
    assert "interrupted" in rest
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < deadline, "the worker is still there"
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    """List the child processes of a process; Linux tells them in a file."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    if not path.exists():
        pytest.skip("this system does not list child processes in /proc")
    return [int(child) for child in path.read_text().split()]
