"""Programs that own a host, for tests that kill them, and what becomes of a process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HANG = 30.0
PROGRAM = """
import os, sys, time
import torch
import bridge.dotnet

def sleeper(host):
    return host.trainer("UserCode.Sleeper", assembly=sys.argv[1], arguments=[60.0])

def batch():
    return torch.zeros(2, 4), torch.zeros(2, dtype=torch.int64)

def say(*numbers):
    print(*numbers, flush=True)

"""


def alive(pid: int) -> bool:
    """Say whether a process runs; one that nobody has reaped yet does not."""
    status = Path(f"/proc/{pid}/stat")
    if sys.platform == "linux":
        try:
            return status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return False
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def wait_until_gone(pid: int) -> None:
    """Wait until a process has ended; a hang fails the test."""
    limit = time.monotonic() + HANG
    while alive(pid):
        assert time.monotonic() < limit, f"process {pid} still runs"
        time.sleep(0.05)


class Parent:
    """A Python program with a host of its own; what it says are numbers, such as process ids."""

    def __init__(self, script: Path, user_code: Path, environment: dict[str, str]) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            [sys.executable, str(script), str(user_code)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def said(self) -> list[int]:
        """Wait for its next line of numbers."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self.ended()
        return [int(word) for word in line.split()]

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def ended(self) -> tuple[int, str]:
        """Wait for its end; returns its exit code and what it wrote to stderr."""
        _, errors = self._process.communicate(timeout=HANG)
        return self._process.returncode, errors

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.communicate()
