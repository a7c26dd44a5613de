"""Checks programs that record a trace each."""

import os
import subprocess
from pathlib import Path

from bridge.check.config import Config
from bridge.check.result import Result
from bridge.trace import compare

FOLDER = "BRIDGE_TRACE_FOLDER"


def programs(config: Config, traces: Path) -> Result:
    """Run a program for each side, and compare what they recorded.

    Spec: R34.1
    """
    for name, table in (("reference", config.reference), ("port", config.port)):
        environment = {**os.environ, FOLDER: str(traces / name)}
        # The command is the user's own line, as in a Makefile.
        done = subprocess.run(  # noqa: S602
            table["command"], shell=True, cwd=config.folder, env=environment, check=False
        )
        if not (traces / name / "trace.jsonl").is_file():
            reason = f"{name}: expected a trace in ${FOLDER}, found none; exit {done.returncode}"
            return Result("incomparable", reason, [], {})
    outcome = compare(traces / "reference", traces / "port", names=config.names)
    return Result(outcome.verdict, outcome.reason, [], dict(config.names), outcome)
