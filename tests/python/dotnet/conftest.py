"""Hosts to test with, and a C# library such as a user would write."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import bridge.dotnet
from bridge.dotnet.trainer import Trainer
from tests.python.dotnet.programs import PROGRAM, Parent

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@pytest.fixture
def host(host_folder: Path) -> Iterator[bridge.dotnet.IsolatedHost]:
    """Start a host for one test."""
    with bridge.dotnet.start(host_folder=host_folder) as host:
        yield host


@pytest.fixture(scope="session")
def user_code(host_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a user's own C# library."""
    dotnet = shutil.which("dotnet")
    if dotnet is None:
        pytest.skip("no dotnet command on PATH to build a user's library with")
    project = tmp_path_factory.mktemp("user") / "code"
    shutil.copytree(HERE / "user_code", project)
    command = [dotnet, "build", "-c", "Release", "-o", "out", f"-p:HostFolder={host_folder}"]
    quiet = ["-nodeReuse:false", "-p:UseSharedCompilation=false", "-v:quiet"]
    built = subprocess.run(
        [*command, *quiet], cwd=project, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout
    return project / "out" / "UserCode.dll"


@pytest.fixture
def make(shared_host: bridge.dotnet.IsolatedHost, user_code: Path) -> Callable[..., Trainer]:
    """Make trainers of the user's models: ``make(name, *arguments, **options)``."""

    def trainer(name: str, *arguments: float, lr: float = 0.5, **options: Any) -> Trainer:  # noqa: ANN401 - JSON
        kind = f"UserCode.{name}"
        host, code = shared_host, user_code
        return host.trainer(kind, assembly=code, arguments=arguments, lr=lr, **options)

    return trainer


@pytest.fixture
def parent(user_code: Path, host_folder: Path, tmp_path: Path) -> Iterator[Callable[[str], Parent]]:
    """Start Python programs that have a host of their own, which the test then treats badly."""
    programs: list[Parent] = []

    def run(body: str) -> Parent:
        script = tmp_path / "program.py"
        script.write_text(PROGRAM + body, encoding="utf-8")
        environment = {"PYTHONPATH": str(ROOT), "BRIDGE_HOST_FOLDER": str(host_folder)}
        programs.append(Parent(script, user_code, {**os.environ, **environment}))
        return programs[-1]

    yield run
    for program in programs:
        program.kill()
