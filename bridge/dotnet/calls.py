"""The calls that wait for a reply of the worker."""

import itertools
import threading
from collections.abc import Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, TypeVar

from bridge.dotnet.errors import WorkerDied, from_reply

T = TypeVar("T")

# A wait without a limit cannot be interrupted by Ctrl-C on Windows.
_POLL = 0.2


@dataclass(frozen=True)
class _Fate:
    """Why there will be no more replies."""

    message: str
    output: str

    def error(self) -> WorkerDied:
        """Make an exception of it, one for each call that fails of it."""
        return WorkerDied(self.message, output=self.output)


class Calls:
    """The calls in flight, in the order in which they were made."""

    def __init__(self) -> None:
        """Start without a call."""
        self._lock = threading.Lock()
        self._pending: dict[int, tuple[str, Future[Any]]] = {}
        self._fate: _Fate | None = None

    def add(self, number: int, method: str) -> Future[Any]:
        """Expect a reply to a new call.

        Raises:
            WorkerDied: there will be none.
        """
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            if self._fate:
                raise self._fate.error()
            self._pending[number] = method, future
        return future

    def complete(self, number: int, reply: Mapping[str, Any]) -> None:
        """Hand a reply to whoever waits for it."""
        with self._lock:
            _, future = self._pending.pop(number, (None, None))
        if future is None:
            return  # The host was closed meanwhile, and the call has failed already.
        if "error" in reply:
            future.set_exception(from_reply(reply["error"]))
        else:
            future.set_result(reply["result"])

    def fail(self, message: str, output: str = "") -> None:
        """End every call in flight and refuse later ones; the first reason given stays."""
        with self._lock:
            self._fate = fate = self._fate or _Fate(message, output)
            pending, self._pending = self._pending, {}
        for _, future in pending.values():
            future.set_exception(fate.error())

    @property
    def running(self) -> str | None:
        """The method that the worker is at, None while it is idle."""
        with self._lock:
            return next((method for method, _ in self._pending.values()), None)

    def settle(self) -> None:
        """Wait until no call is in flight, whatever comes of them."""
        with self._lock:
            futures = [future for _, future in self._pending.values()]
        for future in futures:
            _wait(future, None)


def result(future: Future[T], timeout: float | None = None) -> T:
    """Wait for a result; Ctrl-C interrupts it on every system.

    Raises:
        TimeoutError: nothing came within ``timeout`` seconds.
    """
    _wait(future, timeout)
    if not future.done():
        raise TimeoutError
    return future.result()


def _wait(future: Future[Any], timeout: float | None) -> None:
    """Wait for a future in short turns."""
    turns = itertools.count() if timeout is None else range(int(timeout / _POLL) + 1)
    for _ in turns:
        if future.done():
            return
        wait([future], _POLL)
