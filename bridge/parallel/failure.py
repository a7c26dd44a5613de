"""What went wrong in which replica."""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Failure:
    """One replica's failure: which replica, on which device, and what it raised."""

    replica: int
    device: torch.device
    error: BaseException

    def __str__(self) -> str:
        """Say where and what, with the stack of the replica."""
        return f"in replica {self.replica} on device {self.device}: {self.summary}\n{self.stack}"

    @property
    def stack(self) -> str:
        """The error with its stack."""
        return "".join(traceback.format_exception(self.error)).rstrip()

    @property
    def summary(self) -> str:
        """The type of the error and the first line of its message."""
        first = str(self.error).partition("\n")[0]
        return f"{type(self.error).__name__}: {first}"


class ReplicaError(RuntimeError):
    """At least one replica failed; every failure is reported, with its index and device."""

    def __init__(self, failures: Sequence[Failure], count: int, *, together: bool = False) -> None:
        """Keep the failures and say how many replicas ran, or that those listed failed as one."""
        self.failures = list(failures)
        super().__init__(_together(failures) if together else _each(failures, count))


def _each(failures: Sequence[Failure], count: int) -> str:
    """Describe failures that each replica had by itself."""
    head = f"parallel_apply: {len(failures)} of {count} replicas failed"
    return "\n".join([head, *map(str, failures)])


def _together(failures: Sequence[Failure]) -> str:
    """Describe the one error of replicas that were differentiated together."""
    indices = ", ".join(str(failure.replica) for failure in failures)
    first = failures[0]
    head = f"backward: replicas {indices} failed together, as one backward runs over their losses"
    return f"{head}: {first.summary}\n{first.stack}"
