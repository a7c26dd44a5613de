"""The worker process: .NET and BridgeSharp, no torch; it lives as long as its caller.

The main thread runs one call after the other. A second thread reads the calls, so that the end of
the pipe, which is the end of the caller, ends the worker even while C# computes.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

from bridge.dotnet import runtime
from bridge.dotnet.channel import Channel, encode
from bridge.dotnet.errors import DotnetError
from bridge.dotnet.segment import View

_WATCH = 0.5


def main() -> None:
    """Serve the caller until it goes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The caller decides what Ctrl-C ends.
    channel = Channel(*_take_pipes())
    requests: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_read, args=(channel, requests), daemon=True).start()
    if os.name == "posix":
        threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()
    facade = _load(Path(sys.argv[2]))
    view = View()
    while True:
        request = requests.get()
        name, size = request["segment"]["name"], request["segment"]["size"]
        reply = _call(facade, request["request"], view.address(name, size), size)
        channel.send(encode({"id": request["id"], "reply": reply}))


def _take_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Move the pipes away from 0 and 1, so that what C# prints cannot come between the frames."""
    reader, writer = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return os.fdopen(reader, "rb", buffering=0), os.fdopen(writer, "wb", buffering=0)


def _read(channel: Channel, requests: SimpleQueue[dict[str, Any]]) -> None:
    """Queue the calls; end the process when there can be no more."""
    try:
        while request := channel.receive():
            requests.put(request)
    finally:
        os._exit(0)


def _watch(parent: int) -> None:
    """End the process when its parent has gone, although a fork of it may keep the pipe open."""
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os._exit(0)


def _load(folder: Path) -> runtime.Facade:
    """Load the facade, or make one that always says why it is missing."""
    try:
        return runtime.load(folder)
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller must learn of it
        reply = _failure(error)
        return lambda *_: reply


def _call(facade: runtime.Facade, request: str, address: int, size: int) -> str:
    """Call C#; the facade catches what C# throws, so anything else is a fault of the bridge."""
    try:
        return facade(request, address, size)
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller must learn of it
        return _failure(error)


def _failure(error: Exception) -> str:
    """Make the reply that describes an error of the worker's own, by its first cause."""
    if isinstance(error, DotnetError):
        return json.dumps({"error": {"message": str(error)}})
    cause: Any = error
    while (inner := getattr(cause, "InnerException", None)) is not None:
        cause = inner
    text = getattr(cause, "Message", cause)
    return json.dumps({"error": {"message": f"worker: {type(cause).__name__}: {text}"}})
