"""What the README says works as it stands there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT = 200
PROJECT = """<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFramework>net10.0</TargetFramework>
    <ImplicitUsings>enable</ImplicitUsings>
    <Nullable>enable</Nullable>
  </PropertyGroup>
  <ItemGroup>
    <PackageReference Include="TorchSharp" Version="0.107.0" />
    <Reference Include="{output}/BridgeSharp.Models.dll;{output}/BridgeSharp.dll" />
  </ItemGroup>
  <Import Project="{targets}" />
</Project>
"""


def blocks(language: str) -> list[str]:
    """Read the README's code blocks of a language."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def run(command: list[str], folder: Path = ROOT, **environment: str) -> str:
    """Run a program that must succeed, and return what it prints."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_python_examples_run(number: int, host_folder: Path) -> None:
    """Every Python example runs as it is printed."""
    assert host_folder.is_dir()
    run([sys.executable, "-c", blocks("python")[number]], PYTHONPATH=str(ROOT))


def test_both_languages_print_the_same_losses(host_folder: Path, tmp_path: Path) -> None:
    """The C# example prints five losses that go down, close to those of the Python example."""
    dotnet = shutil.which("dotnet")
    if dotnet is None:
        pytest.skip("no dotnet command on PATH to build the C# example with")
    (tmp_path / "Program.cs").write_text(blocks("csharp")[0], encoding="utf-8")
    targets = ROOT / "csharp" / "BridgeSharp" / "build" / "BridgeSharp.targets"
    project = PROJECT.format(output=host_folder.as_posix(), targets=targets.as_posix())
    (tmp_path / "Example.csproj").write_text(project, encoding="utf-8")
    built = [dotnet, "build", "-c", "Release", "-o", "out", "-nodeReuse:false"]
    run([*built, "-p:UseSharedCompilation=false"], tmp_path)
    csharp = run([dotnet, "out/Example.dll"], tmp_path).split()
    python = run([sys.executable, "-c", blocks("python")[0]], PYTHONPATH=str(ROOT)).split()
    assert len(csharp) == len(python) == 5
    assert [float(loss) for loss in csharp] == pytest.approx([float(x) for x in python], rel=1e-4)


def test_commands_are_the_drivers_own() -> None:
    """The README names the two commands, and targets that the driver has."""
    commands = [line for block in blocks("console") for line in block.splitlines()]
    assert [line.split("#")[0].strip() for line in commands[:2]] == [
        "./build.sh demo",
        "./build.sh test",
    ]
    usage = run(["./build.sh", "help"]) if os.name != "nt" else ""
    for line in commands:
        target = line.split()[1]
        assert f"\n  {target} " in usage or os.name == "nt"


@pytest.mark.skipif(os.name == "nt", reason="build.sh is for Unix; on Windows: pwsh build.ps1")
def test_demo_command_ends_identical(tmp_path: Path, small_data: Path) -> None:
    """The README's demo command, with a small data set, ends with the verdict."""
    out = tmp_path / "out"
    options = ["--steps", "2", "--data", str(small_data), "--out", str(out)]
    printed = run(["./build.sh", "demo", *options])
    assert printed.strip().splitlines()[-1].startswith("identical: ")
    assert (out / "report.html").is_file()
