"""The build driver, started as a user would, in a small repository of its own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
TARGETS = ["setup", "demo", "test", "lint", "bench", "clean", "help"]
ECHO = """
import json, os, sys
print(json.dumps({"arguments": sys.argv[1:], "folder": os.getcwd()}))
sys.exit(int(os.environ.get("ECHO_EXIT", "0")))
"""

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="build.sh is for a POSIX shell"),
    pytest.mark.skipif(
        not (shutil.which("pwsh") or shutil.which("dotnet")), reason="no pwsh and no dotnet on PATH"
    ),
]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the driver beside a stand-in for bridge and a solution without projects."""
    root = tmp_path_factory.mktemp("driver") / "a folder's name"
    shutil.copytree(REPOSITORY / "build", root / "build")
    for name in ("build.sh", "build.ps1", ".editorconfig"):
        shutil.copy(REPOSITORY / name, root)
    for folder in ("bridge", "csharp", "tests"):
        (root / folder).mkdir()
    (root / "bridge" / "__init__.py").touch()
    (root / "bridge" / "__main__.py").write_text(ECHO)
    (root / "csharp" / "BridgeSharp.slnx").write_text("<Solution />\n")
    return root


def run(
    repository: Path, *arguments: str, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Start build.sh with this Python, from a folder that is not the repository."""
    return subprocess.run(
        [str(repository / "build.sh"), *arguments],
        cwd=repository.parent,
        env={**os.environ, "BRIDGE_PYTHON": sys.executable, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_names_every_target(repository: Path) -> None:
    """The usage has a line for each target, and the exit codes."""
    done = run(repository)
    assert done.returncode == 0
    lines = done.stdout.split("Targets:\n")[1].splitlines()
    assert [line.split()[0] for line in lines[: len(TARGETS)]] == TARGETS
    assert "Exit codes: 0 done, 1 a check or a command failed, 2 bad usage." in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dmeo"], f"build: expected one of {', '.join(TARGETS)}, got 'dmeo'"),
        (["lint", "--fix"], "lint: expected no arguments, got --fix"),
        (["clean", "--everything"], "clean: expected --all or no arguments, got --everything"),
    ],
)
def test_bad_usage_ends_with_2(repository: Path, arguments: list[str], message: str) -> None:
    """A target or an argument that does not exist is refused by name."""
    done = run(repository, *arguments)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == message


def test_arguments_arrive_unchanged(repository: Path) -> None:
    """What follows a target reaches the command as it was written, in the caller's folder."""
    arguments = [
        "--steps",
        "40",
        "-x",
        "-v",
        "two words",
        "it's \u2018q\u2019",
        "--data=C:\\x",
        "--",
    ]
    arguments += ["", "*", "~", "$HOME", "`n", "@{a=1}", 'a"b', "-k:5"]
    done = run(repository, "demo", *arguments)
    assert done.returncode == 0, done.stderr
    echo = json.loads(done.stdout.splitlines()[-1])
    assert echo == {"arguments": ["demo", *arguments], "folder": str(repository.parent)}


@pytest.mark.parametrize(("ends_with", "code"), [("2", 2), ("77", 1)])
def test_exit_code_of_the_command(repository: Path, ends_with: str, code: int) -> None:
    """A command that fails ends the build with 1, one that calls its usage bad with 2."""
    assert run(repository, "bench", ECHO_EXIT=ends_with).returncode == code


def test_csharp_is_built_only_when_it_changed(repository: Path) -> None:
    """A source file that is new or gone calls for a build, an unchanged folder does not."""
    run(repository, "setup")
    assert "dotnet builds" not in run(repository, "setup").stdout
    source = repository / "csharp" / "New.cs"
    source.touch()
    assert "dotnet builds" in run(repository, "setup").stdout
    source.unlink()
    assert "dotnet builds" in run(repository, "setup").stdout


def test_a_solution_that_does_not_build(repository: Path) -> None:
    """A failing C# build ends setup with what to do."""
    source = repository / "csharp" / "BridgeSharp.slnx"
    whole = source.read_text()
    source.write_text("<Solution>")
    done = run(repository, "setup")
    source.write_text(whole)
    assert done.returncode == 1
    assert "setup: csharp/ does not build\n  next: " in done.stderr


def test_a_python_that_lacks_packages(repository: Path) -> None:
    """A Python that does not run is refused, with the packages that it should have."""
    done = run(repository, "setup", BRIDGE_PYTHON="/nowhere/python")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "setup: expected /nowhere/python to be Python 3.10 or later with torch numpy"
    )


def test_clean_keeps_the_sources(repository: Path) -> None:
    """What was built and written goes, the rest stays."""
    sources = set(repository.rglob("*.ps1"))
    for folder in ("out", ".pytest_cache", "bridge/__pycache__", "csharp/artifacts", ".venv"):
        (repository / folder).mkdir(exist_ok=True)
    assert run(repository, "clean").returncode == 0
    folders = {path.name for path in repository.iterdir() if path.is_dir()}
    assert folders == {"bridge", "build", "csharp", "tests", ".venv"}
    assert set(repository.rglob("*.ps1")) == sources
    assert run(repository, "clean", "--all").returncode == 0
    assert not (repository / ".venv").exists()
