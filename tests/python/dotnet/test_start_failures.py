"""A host that cannot start says why, in one error, at once."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.dotnet import DotnetError, WorkerDied, folders, runtime, start


def script(path: Path, text: str) -> str:
    """Write an executable script."""
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def has_pythonnet(python: str) -> bool:
    """Say whether pip's pythonnet is installed there."""
    probe = "import importlib.util as u, sys; sys.exit(u.find_spec('pythonnet') is None)"
    return subprocess.run([python, "-c", probe], check=False).returncode == 0


def test_empty_host_folder(tmp_path: Path) -> None:
    """A folder without the host library is refused before any process starts. Spec: R16.5."""
    with pytest.raises(DotnetError, match=r"expected BridgeSharp\.Host\.dll in .*build\.sh setup"):
        start(host_folder=tmp_path)


@pytest.mark.parametrize("library", ["BridgeSharp.dll", "TorchSharp.dll"])
def test_missing_library(library: str, host_folder: Path, tmp_path: Path) -> None:
    """A library missing from the folder is named. Spec: R16.5."""
    copy = tmp_path / "host"
    shutil.copytree(host_folder, copy)
    (copy / library).unlink()
    with pytest.raises(DotnetError, match=rf"expected {library} in .*build\.sh setup"):
        start(host_folder=copy)


@pytest.mark.parametrize("library", ["BridgeSharp.dll", "TorchSharp.dll"])
def test_broken_library(library: str, host_folder: Path, tmp_path: Path) -> None:
    """A library that is none is named too, before any stack. Spec: R16.5."""
    copy = tmp_path / "host"
    shutil.copytree(host_folder, copy)
    (copy / library).write_text("no library", encoding="utf-8")
    with pytest.raises(DotnetError) as info:
        start(host_folder=copy)
    assert library.removesuffix(".dll") in info.value.message.splitlines()[0]


def test_missing_python_runtime(host_folder: Path, tmp_path: Path) -> None:
    """Without pip's pythonnet, the package's Python.Runtime.dll must be in the folder.

    Spec: R16.5.
    """
    python = os.environ.get("BRIDGE_WORKER_PYTHON") or sys.executable
    if has_pythonnet(python):
        pytest.skip("pip's pythonnet is installed: NuGet's is not asked for")
    copy = tmp_path / "host"
    shutil.copytree(host_folder, copy)
    (copy / "Python.Runtime.dll").unlink()
    with pytest.raises(DotnetError, match=r"expected Python\.Runtime\.dll in .*build\.sh setup"):
        start(host_folder=copy)


def test_missing_python(host_folder: Path) -> None:
    """A worker Python that does not exist is named. Spec: R16.5."""
    with pytest.raises(DotnetError, match="start: expected a Python at '/no/python', got"):
        start(host_folder=host_folder, worker_python="/no/python")


@pytest.mark.skipif(os.name != "posix", reason="writes shell scripts")
def test_worker_that_ends_before_it_is_ready(host_folder: Path, tmp_path: Path) -> None:
    """What a worker said before it ended is in the error. Spec: R16.5."""
    python = script(tmp_path / "python", "echo out of order >&2; exit 7")
    with pytest.raises(WorkerDied, match="exited with code 7") as info:
        start(host_folder=host_folder, worker_python=python)
    assert str(info.value).endswith("the worker's last lines:\nout of order")


@pytest.mark.skipif(os.name != "posix", reason="writes shell scripts")
def test_worker_that_says_what_is_no_frame(host_folder: Path, tmp_path: Path) -> None:
    """A program that is no Python and talks is refused, not waited for. Spec: R16.5."""
    python = script(tmp_path / "python", "echo Hello, I am no worker.; exec sleep 60")
    with pytest.raises(WorkerDied, match="receive: expected a frame of at most"):
        start(host_folder=host_folder, worker_python=python)


@pytest.mark.skipif(os.name != "posix", reason="writes shell scripts")
def test_worker_that_never_gets_ready(host_folder: Path, tmp_path: Path) -> None:
    """A worker that keeps silent is given up after the time allowed. Spec: R16.5."""
    python = script(tmp_path / "python", "exec sleep 60")
    with pytest.raises(DotnetError, match=r"start: expected a worker within 0\.5 s, got none"):
        start(host_folder=host_folder, worker_python=python, timeout=0.5)


def test_python_too_old_for_the_package(host_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python 3.10 without pythonnet is told what NuGet's Python.Runtime needs. Spec: R16.5."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(sys, "version_info", (3, 10, 13))
    with pytest.raises(DotnetError, match=r"expected Python 3\.11 or later .* worker_python"):
        runtime.load(host_folder)


@pytest.mark.skipif(sys.platform != "linux", reason="hides .NET in a mount namespace")
def test_machine_without_dotnet(host_folder: Path, tmp_path: Path) -> None:
    """A machine without .NET is an error that names the folders searched. Spec: R16.5."""
    root = folders.hostfxr()[0]
    hide = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none "{root}" && exec "$@"', "sh"]
    if subprocess.run([*hide, "true"], check=False, capture_output=True).returncode:
        pytest.skip("not allowed to hide .NET in a mount namespace")
    words = [f"'{word}'" for word in (*hide, sys.executable)]
    python = script(tmp_path / "python", f'exec {" ".join(words)} "$@"')
    with pytest.raises(DotnetError, match=r"hostfxr: expected \.NET 10 on this machine") as info:
        start(host_folder=host_folder, worker_python=python)
    assert str(root) in str(info.value)
