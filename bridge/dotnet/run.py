"""A C# training job as a Python object."""

from concurrent.futures import Future
from dataclasses import asdict
from typing import Any

from bridge.dotnet.host import Host
from bridge.dotnet.session import Session, then
from bridge.recipes.fashion_lenet import StepResult
from bridge.recipes.options import Options


class Run(Session):
    """Trains the C# twin of :class:`bridge.recipes.FashionLeNet`, one step at a call."""

    @staticmethod
    def create_async(host: Host, options: Options, reference: str) -> Future[dict[str, Any]]:
        """Start to make the job in C# and go on; ``Run`` takes the reply.

        Args:
            host: where C# runs.
            options: the job.
            reference: whose optimizer formulas, ``"1.13"`` or ``"2.10"``.
        """
        return host.submit("run.create", **asdict(options), reference=reference)

    def step_async(self) -> Future[StepResult]:
        """Start to train on the next batch and go on."""
        future = self._host.submit("run.step", handle=self._handle)
        return then(future, _read)

    def evaluate_async(self, count: int | None = None) -> Future[float]:
        """Start to measure the accuracy on the first ``count`` test samples, or on all."""
        future = self._host.submit("run.evaluate", handle=self._handle, count=count)
        return then(future, lambda reply: float(reply["accuracy"]))


def _read(reply: dict[str, Any]) -> StepResult:
    """Read a step's result; a loss that is not finite comes as text, which float reads too."""
    fields: dict[str, Any] = {**reply, "loss": float(reply["loss"])}
    return StepResult(**fields)
