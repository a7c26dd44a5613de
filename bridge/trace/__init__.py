"""Traces of training loops: recorded in either language, compared record by record.

``bridge.trace(path, model, optimizer)`` records; reading and comparing work without torch.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bridge.trace.compare import compare
from bridge.trace.outcome import Divergence, Outcome
from bridge.trace.reader import Trace, TraceError, read
from bridge.trace.record import Record

if TYPE_CHECKING:
    from bridge.trace.recorder import Recorder

__all__ = ["Divergence", "Outcome", "Record", "Recorder", "Trace", "TraceError", "compare", "read"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute can be anything
    """Import the recorder, and with it torch, on first use."""
    if name == "Recorder":
        return import_module("bridge.trace.recorder").Recorder
    message = f"module 'bridge.trace' has no attribute {name!r}"
    raise AttributeError(message)


class _Callable(ModuleType):
    """Lets ``bridge.trace(...)`` begin a trace."""

    def __call__(self, *arguments: Any, **options: Any) -> "Recorder":  # noqa: ANN401
        """Make a ``Recorder`` of the same arguments."""
        recorder: Recorder = self.Recorder(*arguments, **options)
        return recorder


sys.modules[__name__].__class__ = _Callable
