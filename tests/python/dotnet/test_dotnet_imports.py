"""What importing the package brings along."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
import bridge.dotnet
print(sorted({"torch", "numpy", "clr", "pythonnet"} & set(sys.modules)))
"""


def test_import_brings_no_torch() -> None:
    """A fresh process that imports bridge.dotnet has neither torch nor numpy nor .NET in it.

    Spec: R16.1.
    """
    command = [sys.executable, "-c", PROGRAM]
    assert subprocess.check_output(command, text=True, cwd=ROOT).strip() == "[]"
