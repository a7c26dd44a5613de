"""Reaches C# from Python, through a worker process; never imports torch on its own."""

from bridge.dotnet.errors import (
    DotnetError,
    DotnetFileNotFoundError,
    DotnetKeyError,
    DotnetValueError,
    Failure,
    WorkerDied,
)
from bridge.dotnet.host import Host
from bridge.dotnet.isolated import IsolatedHost, start

__all__ = [
    "DotnetError",
    "DotnetFileNotFoundError",
    "DotnetKeyError",
    "DotnetValueError",
    "Failure",
    "Host",
    "IsolatedHost",
    "WorkerDied",
    "start",
]
