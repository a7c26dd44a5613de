"""The isolated host: .NET in a worker process, which lives and dies with its caller's."""

import itertools
import json
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from bridge.dotnet.calls import Calls, result
from bridge.dotnet.channel import encode
from bridge.dotnet.errors import DotnetError
from bridge.dotnet.folders import host_folder as find_host_folder
from bridge.dotnet.host import Host
from bridge.dotnet.process import WorkerProcess
from bridge.dotnet.segment import Segment


def start(
    *,
    worker_python: str | None = None,
    host_folder: str | os.PathLike[str] | None = None,
    timeout: float = 60.0,
) -> "IsolatedHost":
    """Start a worker process with .NET and BridgeSharp in it.

    Args:
        worker_python: the Python that runs it, without torch if need be; else
            ``BRIDGE_WORKER_PYTHON``, else the caller's own.
        host_folder: where BridgeSharp.Host.dll is; else ``BRIDGE_HOST_FOLDER``, else the build
            output of the repository.
        timeout: seconds after which to give up.

    Raises:
        DotnetError: it does not start; the message says why.
    """
    python = worker_python or os.environ.get("BRIDGE_WORKER_PYTHON") or sys.executable
    return IsolatedHost(python, host_folder, timeout)


class IsolatedHost(Host):
    """.NET in a worker process; at the latest, it ends with the program.

    Attributes:
        pid: the worker's process number.
    """

    def __init__(
        self, python: str, host_folder: str | os.PathLike[str] | None, timeout: float
    ) -> None:
        """Start the worker; ``start`` knows the defaults."""
        folder = find_host_folder(host_folder)
        self._lock = threading.RLock()
        self._numbers = itertools.count()
        self._calls = Calls()
        self._segment = Segment()
        try:
            self._process = WorkerProcess(python, folder, self._segment.inherited)
        except OSError as error:
            self._segment.close()
            message = f"start: expected a Python at {python!r}, got {error}"
            raise DotnetError(message) from error
        self.pid = self._process.pid
        self._end = weakref.finalize(self, _end, self._process, self._segment)
        listener = (self._process, self._calls)
        threading.Thread(target=_listen, args=listener, name="bridge-dotnet", daemon=True).start()
        self.versions = self._greet(timeout)

    def submit(self, method: str, /, **arguments: Any) -> Future[Any]:  # noqa: ANN401 - JSON
        """Start a call and go on; callbacks of the future must not wait for this host.

        Args:
            method: a method of the facade, such as ``trainer.step``.
            arguments: its arguments, anything that JSON can hold.

        Raises:
            WorkerDied: the worker is gone.
        """
        if os.getpid() != self._process.owner:
            message = f"submit: the host belongs to process {self._process.owner}, not to its forks"
            raise DotnetError(message)
        with self._lock:
            number = next(self._numbers)
            segment = {"name": self._segment.name, "size": self._segment.size}
            request = json.dumps({"method": method, "arguments": arguments}, allow_nan=False)
            frame = encode({"id": number, "segment": segment, "request": request})
            future = self._calls.add(number, method)
            try:
                self._process.channel.send(frame)
            except (OSError, ValueError):
                pass  # The worker is gone: the listener fails the future, with the reason.
            except BaseException:
                self.close()  # Half a frame may be in the pipe: nothing can follow it.
                raise
        return future

    @contextmanager
    def segment(self, size: int) -> Iterator[memoryview]:
        """Have the shared memory to oneself, at least ``size`` bytes of it.

        It waits for the calls in flight first, and keeps other threads from calling until the end
        of the block.
        """
        with self._lock:
            self._calls.settle()
            yield self._segment.grow(size)

    def close(self) -> None:
        """End the worker; again is harmless."""
        self._calls.fail(f"the host of dotnet worker (pid {self.pid}) is closed")
        self._end()

    def _greet(self, timeout: float) -> dict[str, Any]:
        """Wait for the worker's first reply, or end it and say why there is none."""
        try:
            versions: dict[str, Any] = result(self.submit("hello"), timeout)
        except TimeoutError:
            self.close()
            message = f"start: expected a worker within {timeout:g} s, got none"
            raise DotnetError(message, output=self._process.errors.last) from None
        except BaseException as error:
            self.close()
            if isinstance(error, DotnetError):
                error.output = self._process.errors.last
            raise
        self._process.errors.passing = True
        return versions


def _listen(process: WorkerProcess, calls: Calls) -> None:
    """Hand the replies to those who wait, and tell them when the worker is gone."""
    trouble = ""
    try:
        while message := process.channel.receive():
            calls.complete(message["id"], json.loads(message["reply"]))
    except ValueError as error:
        trouble = f": {error}"
    finally:
        doing = calls.running
        process.end()
        calls.fail(process.obituary(doing) + trouble, process.errors.last)


def _end(process: WorkerProcess, segment: Segment) -> None:
    """End the worker and let go of the memory; knows no host, so that a host can be collected."""
    process.end()
    segment.close()
