"""Weights through both commands, from Python to C# and back."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from bridge.checkpoint import load
from bridge.parity.digest import digest

ROOT = Path(__file__).parents[3]
LIMIT = 120
MAP = '{"layers.*.weight": "blocks.*.w"}'


def state() -> dict[str, torch.Tensor]:
    """Make weights under names that the map and the prefix change."""
    return {
        "net.layers.0.weight": torch.tensor([[0.5, -1.25]]),
        "net.layers.1.weight": torch.tensor([[2.0], [float("nan")]], dtype=torch.float64),
        "net.count": torch.tensor(3),
    }


@pytest.fixture
def commands(host_folder: Path) -> dict[str, list[str]]:
    """Name the commands of both languages."""
    dotnet = shutil.which("dotnet")
    program = host_folder.parents[1] / "BridgeSharp.Cli" / "release" / "BridgeSharp.Cli.dll"
    if dotnet is None or not program.is_file():
        pytest.skip(f"no dotnet command on PATH, or no {program}")
    return {"Python": [sys.executable, "-m", "bridge"], "C#": [dotnet, str(program)]}


def run(command: list[str], *arguments: object) -> tuple[int, list[list[str]], str]:
    """Convert, and return the exit code, the lines in words, and the error."""
    whole = [*command, "convert", *map(str, arguments)]
    done = subprocess.run(
        whole, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    return done.returncode, lines, done.stderr


@pytest.mark.parametrize("suffix", ["safetensors", "dat", "pt"])
def test_there_and_back(commands: dict[str, list[str]], tmp_path: Path, suffix: str) -> None:
    """C# renames what Python wrote, Python renames it back: the same bits. Spec: R29.1, R29.3."""
    first, second, last = (tmp_path / f"{name}.{suffix}" for name in "abc")
    (tmp_path / "map.json").write_text(MAP, encoding="utf-8")
    (tmp_path / "back.json").write_text('{"blocks.*.w": "layers.*.weight"}', encoding="utf-8")
    torch.save(state(), tmp_path / "in.pth")
    assert run(commands["Python"], tmp_path / "in.pth", first)[0] == 0
    renaming = ("--strip", "net.", "--map", tmp_path / "map.json")
    code, lines, error = run(commands["C#"], first, second, *renaming)
    assert (code, error) == (0, "")
    assert ["net.layers.0.weight", "blocks.0.w", "(1,", "2)", "float32"] in lines
    back = ("--prefix", "net.", "--map", tmp_path / "back.json")
    assert run(commands["Python"], second, last, *back)[0] == 0
    assert run(commands["Python"], last, tmp_path / "out.pth")[0] == 0
    assert digest(load(tmp_path / "out.pth").items()) == digest(state().items())


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--dry-run", "--dtype", "float16"], 0),
        (["--dry-run", "--map", "map.toml"], 0),
        (["--like", "like.pt"], 1),
        (["--map", "unused.json"], 2),
        (["--map", "wrong.json"], 2),
        (["--map", "none.json"], 2),
        (["--part", "x"], 2),
        (["--format", "onnx"], 2),
        (["--like", "none.pt"], 2),
    ],
)
def test_commands_are_twins(
    commands: dict[str, list[str]], tmp_path: Path, options: list[str], code: int
) -> None:
    """Tables, lists of what did not match, and exit codes are the same. Spec: R29.4, R29.6."""
    if "map.toml" in options:
        pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
    torch.save(state(), tmp_path / "in.pt")
    torch.save({"net.count": torch.ones(2), "x": torch.ones(1, 2)}, tmp_path / "like.pt")
    files = {
        "map.toml": "'net.layers.*' = 'b.*'\nnet.count = 'n'\n",
        "unused.json": '{"x": "y"}',
        "wrong.json": '{"x": 1}',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    given = [
        str(tmp_path / o) if Path(o).suffix in {".toml", ".json", ".pt"} else o for o in options
    ]
    sides = {
        name: run(command, tmp_path / "in.pt", tmp_path / "out.dat", *given)
        for name, command in commands.items()
    }
    assert sides["Python"][0] == code, sides
    assert sides["Python"][:2] == sides["C#"][:2]
    if "none" not in " ".join(options):
        assert sides["Python"][2] == sides["C#"][2]
    assert not (tmp_path / "out.dat").exists()
