"""A C# trainer as a Python object."""

import os
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from bridge.dotnet.calls import result
from bridge.dotnet.host import Host
from bridge.dotnet.session import Session, then
from bridge.dotnet.tensors import Layout
from bridge.optim import reference as own_reference


class Trainer(Session):
    """Trains a C# model in the worker; ``Host.trainer`` makes one and knows the arguments."""

    def __init__(self, host: Host, *, reference: str | None, **specification: Any) -> None:  # noqa: ANN401 - JSON
        """Make the trainer in C#."""
        formulas = reference or own_reference()
        super().__init__(host, host.call("trainer.create", reference=formulas, **specification))

    @contextmanager
    def trace(
        self,
        path: str | PathLike[str],
        *,
        activation_gradients: bool = False,
        full: str | None = None,
        full_step: int | None = None,
    ) -> Iterator[None]:
        """Record a trace of the C# trainer, as ``bridge.trace`` does of a Python trainer.

        Args:
            path: the folder of the trace; a trace in it is replaced.
            activation_gradients: take down the gradients of the outputs of layers too.
            full: keep the tensors whole whose name matches this pattern.
            full_step: only in this step.
        """
        options: dict[str, Any] = {"activation_gradients": activation_gradients, "full": full}
        options |= {"handle": self._handle, "full_step": full_step}
        self._host.call("trainer.trace", path=str(Path(path).absolute()), **options)
        try:
            yield
        finally:
            if self._handle:
                self._host.call("trainer.trace", path=None, **options)

    def describe(self, seed: int) -> dict[str, Any]:
        """Say what no trace does: tied names, schedulers, threads, and the first draws of a seed.

        Args:
            seed: which the generator has afterwards.
        """
        about: dict[str, Any] = self._host.call("trainer.describe", handle=self._handle, seed=seed)
        return about

    def forward(self, inputs: object) -> None:
        """Run the model in evaluation mode, for its trace.

        Args:
            inputs: a tensor or numpy array, its only argument.

        Raises:
            DotnetError: C# threw.
        """
        layout = Layout("forward")
        batch = layout.tree(inputs)
        with self._host.segment(layout.size) as memory:
            layout.write(memory)
            self._host.call("trainer.forward", handle=self._handle, inputs=batch)

    def step(self, inputs: object, targets: object) -> float:
        """Train on one batch and return its mean loss.

        Args:
            inputs: a tensor or numpy array ``(N, *)``, or tuples, lists and dicts of them; a tuple
                holds positional arguments.
            targets: the same.

        Raises:
            DotnetError: C# threw; ``failures`` name the replicas where it did.
        """
        return result(self.step_async(inputs, targets))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state of the training run to a file that ``bridge.Trainer.load`` reads.

        Args:
            path: the file; it is replaced as a whole.

        Raises:
            DotnetError: the file cannot be written.
        """
        self._host.call("trainer.save", handle=self._handle, path=str(Path(path).absolute()))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on where the run was that ``save`` here or of ``bridge.Trainer`` wrote.

        Args:
            path: the file.

        Raises:
            DotnetError: a file that is not whole, or that of another trainer; nothing changes.
        """
        self._host.call("trainer.load", handle=self._handle, path=str(Path(path).absolute()))

    def step_async(self, inputs: object, targets: object) -> Future[float]:
        """Start a step and go on; the arguments are copied before it returns."""
        layout = Layout("step")
        batch = {"inputs": layout.tree(inputs), "targets": layout.tree(targets)}
        with self._host.segment(layout.size) as memory:
            layout.write(memory)
            future = self._host.submit("trainer.step", handle=self._handle, **batch)
        # A loss that is not finite comes as text, which float reads too.
        return then(future, lambda reply: float(reply["loss"]))
