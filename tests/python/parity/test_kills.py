"""A training run that is killed at random moments ends as if it had never been."""

import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.parity

ROOT = Path(__file__).parents[3]
LIMIT = 120
KILLS = 2
STEPS = 12
PROGRAM = """
import sys
from pathlib import Path
from bridge.recipes import FashionLeNet, Options

data, file, steps = sys.argv[1:]
run = FashionLeNet(Options(data=data, epochs=1000, steps=int(steps), batch=4))
if Path(file).exists():
    run.load(file)
while run.trainer.steps < run.planned_steps:
    run.step()
    run.save(file)
print("digest", run.digest())
"""


@pytest.mark.parametrize("language", ["python", "csharp"])
def test_a_killed_run_ends_as_the_unbroken(
    host_folder: Path, small_data: Path, tmp_path: Path, language: str
) -> None:
    """The parameters are the same bit for bit, whenever it was killed. Spec: R28.4."""
    unbroken, killed = tmp_path / "unbroken", tmp_path / "killed"
    expected = ended(command(language, host_folder, small_data, unbroken))
    again = command(language, host_folder, small_data, killed)
    pick = random.Random(language)  # noqa: S311 - when
    for _ in range(KILLS):
        process = subprocess.Popen(again, cwd=ROOT, stdout=subprocess.DEVNULL)
        before = changed(killed)
        limit = time.monotonic() + LIMIT
        while changed(killed) == before and process.poll() is None:
            assert time.monotonic() < limit
            time.sleep(0.002)
        time.sleep(pick.uniform(0, 0.05))
        process.kill()
        process.wait()
    assert killed.exists()
    assert ended(again) == expected
    left = {path.name for path in tmp_path.iterdir()}
    assert left <= {"unbroken", "killed", small_data.name}


def command(language: str, host_folder: Path, data: Path, file: Path) -> list[str]:
    """Name the program that trains, saves after every step, and resumes."""
    if language == "python":
        return [sys.executable, "-c", PROGRAM, str(data), str(file), str(STEPS)]
    dotnet = shutil.which("dotnet")
    program = host_folder.parents[1] / "BridgeSharp.Cli" / "release" / "BridgeSharp.Cli.dll"
    if dotnet is None or not program.is_file():
        pytest.skip(f"no dotnet command on PATH, or no {program}")
    options = {"epochs": 1000, "steps": STEPS, "batch": 4, "threads": 1, "every": 1}
    named = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    files = ["--data", str(data), "--checkpoint", str(file), "--resume"]
    return [dotnet, str(program), "train", "lenet", *named, *files]


def changed(file: Path) -> int:
    """Tell when a file was last replaced."""
    return file.stat().st_mtime_ns if file.exists() else 0


def ended(program: list[str]) -> str:
    """Let a run go to its end, and return the digest that it prints."""
    done = subprocess.run(
        program, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"digest +(\S+)", done.stdout)
    assert found, done.stdout
    return found[1]
