"""The doctor: what it finds, and what it says where something is hidden."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bridge.dotnet
from bridge.doctor import Finding, csharp_side, examine, glibcxx
from bridge.doctor.battery import findings, fingerprint, measure
from bridge.dotnet import folders

ROOT = Path(__file__).parents[3]
HIDE = "import sys; sys.modules[{name!r}] = None; from bridge.cli import main; main()"


def by_name(found: list[Finding]) -> dict[str, Finding]:
    """Find findings by name."""
    return {finding.name: finding for finding in found}


def run(code: str, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the doctor in a Python of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, "doctor", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_sound_machine(host_folder: Path) -> None:
    """Both sides are described, nothing is missing, and the build family is told. Spec: R32.1."""
    assert host_folder.is_dir()
    found = list(examine())
    names = by_name(found)
    assert [finding for finding in found if finding.state == "missing"] == []
    for name in ("python", "torch", "torch BLAS", "torch CPU capability", "torch threads"):
        assert names[name].value
    for name in (".NET", "TorchSharp", "libtorch", "CPU capability", "threads"):
        assert names[f"C# {name}"].value
    assert names["build family"].value.startswith(("one: ", "two: "))


def test_json_and_exit_code(host_folder: Path) -> None:
    """With --json the findings are JSON; a usable machine ends with 0. Spec: R32.5."""
    done = run("from bridge.cli import main; main()", "--json", BRIDGE_HOST_FOLDER=str(host_folder))
    report = json.loads(done.stdout)
    assert (done.returncode, report["usable"]) == (0, True), done.stdout
    assert {"name", "state", "value", "remedy"} == set(report["findings"][0])


def test_without_torch(host_folder: Path) -> None:
    """Without torch it goes on to C#, says how to get it, and ends with 1. Spec: R32.2, R32.5."""
    done = run(HIDE.format(name="torch"), BRIDGE_HOST_FOLDER=str(host_folder))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "x torch " in done.stdout
    assert "-m pip install torch" in done.stdout
    assert re.search(r"host isolated +works: BridgeSharp", done.stdout)
    assert done.stdout.endswith("not usable: torch missing\n")


def test_without_a_build(tmp_path: Path) -> None:
    """Without a built C# side it says what to run, and ends with 1. Spec: R32.2, R32.5."""
    done = run("from bridge.cli import main; main()", BRIDGE_HOST_FOLDER=str(tmp_path))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "expected BridgeSharp.Host.dll in" in done.stdout
    assert "-> run ./build.sh setup, or name the folder with BRIDGE_HOST_FOLDER" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("not usable: ")


def test_without_dotnet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without .NET it says where it looked and how to get it. Spec: R32.2."""
    monkeypatch.setattr(folders, "_roots", lambda: iter([tmp_path]))
    monkeypatch.setenv("PATH", str(tmp_path))
    names = by_name(list(csharp_side.outside()))
    assert names[".NET"].state == "missing"
    assert str(tmp_path) in names[".NET"].value
    assert names[".NET"].remedy.startswith("install it from https://dot.net")
    assert names["dotnet command"].state == "note"


def test_a_worker_that_does_not_start(monkeypatch: pytest.MonkeyPatch, host_folder: Path) -> None:
    """A Python for the worker that is none is missing, not an exception. Spec: R32.2."""
    assert host_folder.is_dir()
    monkeypatch.setenv("BRIDGE_WORKER_PYTHON", "/no/such/python")
    host, finding = csharp_side.connect()
    assert host is None
    assert (finding.name, finding.state) == ("host isolated", "missing")


def test_versions_of_libstdcxx(tmp_path: Path) -> None:
    """The newest version that a library names is found, by number, not by text. Spec: R32.3."""
    library = tmp_path / "library.so"
    library.write_bytes(b"\x7fELF\0GLIBCXX_3.4.9\0GLIBCXX_3.4.32\0GLIBCXX_3.4.30\0")
    assert glibcxx.newest(library) == "3.4.32"
    library.write_bytes(b"nothing")
    assert glibcxx.newest(library) is None
    assert glibcxx.older("3.4.9", "3.4.32")
    assert not glibcxx.older("3.4.32", "3.4.32")


def test_battery_and_fingerprint(shared_host: bridge.dotnet.IsolatedHost) -> None:
    """The fingerprints of both sides are equal exactly where all bits are. Spec: R32.4."""
    aspects = measure(shared_host, 1)
    (csharp,) = [f for f in csharp_side.inside(shared_host) if f.name == "C# fingerprint"]
    same = all(aspect.verdict == "same bits" for aspect in aspects)
    assert (csharp.value == fingerprint()) == same
    told = list(findings(aspects))
    assert told[0].value.startswith("one: " if same else "two: ")
    odd = [aspect.name for aspect in aspects if aspect.verdict != "same bits"]
    assert [finding.name.strip() for finding in told[1:]] == odd
    assert all(finding.value.endswith(" ulp") for finding in told[1:])
