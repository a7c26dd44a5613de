"""What goes wrong in C#, as Python exceptions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Failure:
    """One replica's failure in C#: which replica, on which device, and what it threw."""

    replica: int
    device: str
    type: str
    message: str
    stack: str

    def __str__(self) -> str:
        """Say where and what, with the C# stack of the replica."""
        head = f"in replica {self.replica} on device {self.device}: {self.type}: {self.message}"
        return f"{head}\n{self.stack}".rstrip()


class DotnetError(RuntimeError):
    """Something failed in .NET, or on the way there.

    Args:
        message: what failed.
        type: full name of the C# exception, empty where none was thrown.
        stack: the C# stack.
        failures: the failures of single replicas.
        output: the last lines that the worker wrote, where they tell more.
    """

    def __init__(
        self,
        message: str,
        *,
        type: str = "",  # noqa: A002 - the word that C# and the replies use
        stack: str = "",
        failures: Sequence[Failure] = (),
        output: str = "",
    ) -> None:
        """Keep the parts; ``str`` puts them together."""
        super().__init__(message)
        self.message = message
        self.type = type
        self.stack = stack
        self.failures = list(failures)
        self.output = output

    def __str__(self) -> str:
        """Put the message first, then each replica's failure, the C# stack and the output."""
        parts = [self.message, *(str(failure) for failure in self.failures)]
        if self.stack:
            parts.append(f"C# stack ({self.type}):\n{self.stack}")
        if self.output:
            parts.append(f"the worker's last lines:\n{self.output}")
        return "\n".join(parts)


class DotnetValueError(DotnetError, ValueError):
    """C# refused an argument."""


class DotnetKeyError(DotnetError, KeyError):
    """C# did not find a key."""


class DotnetFileNotFoundError(DotnetError, FileNotFoundError):
    """C# did not find a file or a folder."""


class WorkerDied(DotnetError):  # noqa: N818 - what happened, in the words of a user
    """The worker is gone: it was killed, it crashed, or its host was closed."""


_KINDS: dict[str, type[DotnetError]] = {
    "System.ArgumentException": DotnetValueError,
    "System.Collections.Generic.KeyNotFoundException": DotnetKeyError,
    "System.IO.DirectoryNotFoundException": DotnetFileNotFoundError,
    "System.IO.FileNotFoundException": DotnetFileNotFoundError,
}


def from_reply(error: Mapping[str, Any]) -> DotnetError:
    """Make the exception that an error in a reply describes.

    Args:
        error: ``message``, and where C# threw, ``type``, its base types in ``kinds``, ``stack`` and
            ``failures``.
    """
    known = (_KINDS[kind] for kind in error.get("kinds", ()) if kind in _KINDS)
    return next(known, DotnetError)(
        error["message"],
        type=error.get("type", ""),
        stack=error.get("stack", ""),
        failures=[Failure(**failure) for failure in error.get("failures", ())],
    )
