"""The worker process as its caller sees it: starting it, what it says, how it ends."""

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from bridge.dotnet.channel import Channel

# Finds the package by its path, whatever the worker's Python has on its own, and leaves the
# current folder out of the search: a json.py there must not be taken for the library's.
_BOOTSTRAP = """\
import sys
if sys.version_info < (3, 10):
    sys.exit("bridge needs Python 3.10 or later, this is Python " + sys.version.split()[0])
sys.path[:] = [folder for folder in sys.path if folder]
import importlib.util
spec = importlib.util.spec_from_file_location("bridge", sys.argv[1])
module = sys.modules["bridge"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from bridge.dotnet.worker import main
main()
"""
_PACKAGE = Path(__file__).parents[1] / "__init__.py"
_GRACE = 1.0
_LINES = 20
_LINE_LIMIT = 4096


class WorkerProcess:
    """A worker process, and the channel to it.

    Args:
        python: the Python that runs it.
        folder: the host folder.
        inherited: file descriptors that it inherits.

    Raises:
        OSError: that Python does not start.
    """

    def __init__(self, python: str, folder: Path, inherited: Sequence[int]) -> None:
        """Start the process, out of reach of the terminal's Ctrl-C."""
        self._popen = subprocess.Popen(  # noqa: S603 - the Python that the caller named
            [python, "-c", _BOOTSTRAP, str(_PACKAGE), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            **_apart(inherited),
        )
        self.pid = self._popen.pid
        self.owner = os.getpid()
        self._input = cast("IO[bytes]", self._popen.stdin)
        self.channel = Channel(cast("IO[bytes]", self._popen.stdout), self._input)
        self.errors = Errors(cast("IO[bytes]", self._popen.stderr))

    def end(self) -> None:
        """End the process, politely at first, and reap it; again is harmless."""
        if os.getpid() != self.owner:
            return
        self._input.close()
        try:
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(_GRACE)
        finally:
            self._popen.kill()
            self._popen.wait()
            self.errors.finish()

    def obituary(self, doing: str | None) -> str:
        """Say how the ended process ended, and what it was running."""
        code = self._popen.returncode
        how = f"was killed by {_signal_name(-code)}" if code < 0 else f"exited with code {code}"
        what = f" while running '{doing}'" if doing else ""
        return f"dotnet worker (pid {self.pid}) {how}{what}"


class Errors:
    """What the worker and its C# write to the console: the last lines, and all passed on."""

    def __init__(self, stream: IO[bytes]) -> None:
        """Start reading."""
        self.passing = False
        self._stream = stream
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._thread = threading.Thread(target=self._read, name="bridge-dotnet-errors", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait for the last lines; a child that the worker left behind cannot hold this up."""
        if self._thread is not threading.current_thread():
            self._thread.join(_GRACE)

    @property
    def last(self) -> str:
        """The last lines."""
        return "".join(self._lines).rstrip()

    def _read(self) -> None:
        """Keep the last lines and pass them on."""
        with open(self._stream.fileno(), "rb", closefd=False) as lines, self._stream:
            while line := lines.readline(_LINE_LIMIT).decode(errors="replace"):
                self._lines.append(line)
                if self.passing:
                    # Nobody may be there to read, but the worker must never wait for that.
                    with suppress(OSError, ValueError, AttributeError):
                        sys.stderr.write(line)
                        sys.stderr.flush()


def _apart(inherited: Sequence[int]) -> dict[str, Any]:
    """Options that start a process in a session or group of its own."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True, "pass_fds": inherited}


def _signal_name(number: int) -> str:
    """Name a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
