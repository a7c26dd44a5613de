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
        stack = "".join(traceback.format_exception(self.error)).rstrip()
        return f"in replica {self.replica} on device {self.device}: {self.summary}\n{stack}"

    @property
    def summary(self) -> str:
        """The type of the error and the first line of its message."""
        first = str(self.error).partition("\n")[0]
        return f"{type(self.error).__name__}: {first}"


class ReplicaError(RuntimeError):
    """At least one replica failed; every failure is reported, with its index and device."""

    def __init__(self, failures: Sequence[Failure], count: int) -> None:
        """Keep the failures and say how many replicas ran."""
        self.failures = list(failures)
        head = f"parallel_apply: {len(self.failures)} of {count} replicas failed"
        super().__init__("\n".join([head, *(str(failure) for failure in self.failures)]))
