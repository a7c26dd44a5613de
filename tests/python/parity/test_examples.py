"""The examples leave the same in both languages, and each runs by its command."""

import re
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from bridge.dotnet import IsolatedHost
from bridge.dotnet.calls import result
from bridge.dotnet.session import Session
from bridge.examples import NAMES, Setting, find
from bridge.optim import reference
from bridge.parity.compare import Rule, compare

pytestmark = pytest.mark.parity

ROOT = Path(__file__).parents[3]
SEED, LIMIT = 5, 120
STEPS = {"data_parallel": 3}
"""Of the example that takes a second for each; else 6: an epoch, and a step that accumulates."""
NUMBER = re.compile(r"-?\d[\d.]*([eE][+-]?\d+)?")


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_same_losses_and_state(
    shared_host: IsolatedHost, rule: Rule, name: str, replicas: int
) -> None:
    """Both languages leave the same losses and parameters. Spec: R23.2."""
    pytest.importorskip(f"bridge.examples.{name}")
    for dtype in ("float64", "float32") if rule == "bitwise" else ("float64",):
        setting = Setting(STEPS.get(name, 6), replicas, SEED, dtype, reference())
        pending = shared_host.submit("example.run", name=name, threads=1, setting=asdict(setting))
        own = find(name)(setting, lambda _: None)
        port = result(pending)
        assert list(port["numbers"]) == list(own.numbers)
        pair = [{"losses": torch.tensor(losses)} for losses in (own.losses, port["losses"])]
        assert all(c.same for c in compare(pair[0], pair[1], rule))
        with Session(shared_host, port) as session:
            tensors = compare(own.state, session.state_dict(), rule)
        assert [c.name for c in tensors if not c.same] == []


@pytest.mark.parametrize("name", NAMES)
def test_command(host_folder: Path, name: str) -> None:
    """Both commands print the same lines, but for the numbers. Spec: R23.1."""
    pytest.importorskip(f"bridge.examples.{name}")
    dotnet = shutil.which("dotnet")
    program = host_folder.parents[1] / "BridgeSharp.Cli" / "release" / "BridgeSharp.Cli.dll"
    if dotnet is None or not program.is_file():
        pytest.skip(f"no dotnet command on PATH, or no {program}")
    python = lines([sys.executable, "-m", "bridge"], name)
    csharp = lines([dotnet, str(program)], name)
    assert len(python) > 3
    assert [NUMBER.sub("#", line) for line in python] == [NUMBER.sub("#", line) for line in csharp]


def lines(command: list[str], name: str) -> list[str]:
    """Run an example by a command that must succeed, and return what it prints."""
    options = ["example", name, "--steps", "2", "--seed", str(SEED), "--dtype", "float64"]
    done = subprocess.run(
        [*command, *options], cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()
