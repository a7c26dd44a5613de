"""Records a trace of a training loop."""

import platform
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim import Optimizer

from bridge.parallel.observer import Observer
from bridge.parallel.trainer import Trainer
from bridge.trace.keeper import Keeper
from bridge.trace.layer_calls import LayerCalls
from bridge.trace.scribe import Scribe
from bridge.trace.writer import Writer

if TYPE_CHECKING:
    from typing_extensions import Self


class Recorder(Observer):
    """Takes down what a training loop does, step by step.

    A loop of one's own says where it is: :meth:`inputs` begins a step, :meth:`loss` comes after the
    forward, :meth:`gradients` after the backward, and :meth:`step` after the update. A trainer says
    so itself. Observation changes nothing: a run that is recorded has the bits of one that is not.

    Args:
        path: the folder of the trace; a trace in it is replaced.
        model: a module, or a trainer, whose replicas and optimizers are recorded.
        optimizer: of the module, if it has one.
        every: record every so many steps, from the first on.
        full: keep the tensors whole whose name, such as ``fc1.*``, matches this pattern.
        full_steps: only in these steps.
        activation_gradients: take down the gradients of the outputs of layers too.

    Raises:
        ValueError: ``every`` below 1.

    Spec: R30.1, R30.3, R30.4, R30.5, R30.6
    """

    def __init__(  # noqa: PLR0913 - one argument per option
        self,
        path: str | Path,
        model: nn.Module | Trainer,
        optimizer: Optimizer | None = None,
        *,
        every: int = 1,
        full: str | None = None,
        full_steps: Collection[int] | None = None,
        activation_gradients: bool = False,
    ) -> None:
        """Write the beginning of the trace, and hook the layers."""
        if every < 1:
            message = f"trace: expected every of at least 1, got {every}"
            raise ValueError(message)
        self._trainer = model if isinstance(model, Trainer) else None
        self._replicas = model.replicas if isinstance(model, Trainer) else [model]
        own = [] if optimizer is None else [optimizer]
        optimizers = model.optimizers if isinstance(model, Trainer) else own
        keeper = Keeper(full, full_steps)
        self._every = every
        self._calls = LayerCalls(self._replicas, keeper, gradients=activation_gradients)
        self._stack = ExitStack()
        self._writer = self._stack.enter_context(Writer(path, _about(self._replicas)))
        self._scribe = Scribe(self._writer, keeper, optimizers)
        self._scribe.configuration(self._replicas[0])
        for index, replica in enumerate(self._replicas):
            self._scribe.state("init", index, replica)
        self._calls.attach(self._replicas, self._stack)
        if self._trainer is not None:
            self._trainer.observer = self

    def inputs(self, inputs: object, targets: object = None, replica: int = 0) -> None:
        """Begin a step, and take down its batch; the forward is observed from here to the loss.

        Args:
            inputs: any tree of tensors.
            targets: any tree of tensors.
            replica: whose they are.
        """
        if self._on:
            self._scribe.tree("scatter", replica, "input", "inputs", inputs)
            self._scribe.tree("scatter", replica, "input", "targets", targets)
            self._calls.step = self._scribe.number

    def loss(self, loss: torch.Tensor, replica: int = 0) -> None:
        """Take down the forward, and the loss.

        Args:
            loss: a tensor.
            replica: whose it is.
        """
        if self._on:
            self._calls.step = None
            self._scribe.write(self._calls.take())
            self._scribe.tree("loss", replica, "loss", "loss", loss)

    def gradients(self, phase: str = "backward") -> None:
        """Take down the gradients of the parameters.

        Args:
            phase: ``"backward"``, of all replicas; or ``"reduce"`` or ``"clip"``, of replica 0.
        """
        if self._on:
            self._scribe.write(self._calls.take_gradients())
            for index, replica in enumerate(self._replicas):
                if index == 0 or phase == "backward":
                    self._scribe.gradients(phase, index, replica)

    def step(self) -> None:
        """Take down what the update left, and end the step."""
        if self._on:
            self._scribe.write(self._calls.take())
            for index, replica in enumerate(self._replicas):
                self._scribe.state("resync" if index else "step", index, replica)
                for name in self._calls.unseen(index):
                    self._scribe.unseen(index, name)
        self._end_step()

    def undo(self) -> None:
        """Say that the step so far was undone, and is done again."""
        self._calls.take()
        self._calls.take_gradients()
        self._scribe.value("forward", 0, "configuration", "step", "undone", value=True)

    def fail(self, failure: BaseException) -> None:
        """Take down an exception that ended the step."""
        self._scribe.write(self._calls.take())
        self._scribe.value("step", 0, "failure", "exception", value=str(failure))
        self._end_step()

    def close(self) -> None:
        """End the trace and let go of the model; again is harmless."""
        if self._trainer is not None:
            self._trainer.observer = Observer()
        self._writer.close(self._scribe.number)
        self._stack.close()

    def __enter__(self) -> "Self":
        """Return the recorder itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the trace; an exception of the loop is taken down."""
        if error is not None and self._trainer is None:
            self.fail(error)
        self.close()

    @property
    def _on(self) -> bool:
        """Tell whether this step is recorded."""
        return self._scribe.number % self._every == 0

    def _end_step(self) -> None:
        """Go on to the next step."""
        self._calls.step = None
        self._calls.reset()
        self._scribe.end_step()


def _about(replicas: Sequence[nn.Module]) -> dict[str, Any]:
    """Say what runs."""
    return {
        "language": "Python",
        "replicas": len(replicas),
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "threads": torch.get_num_threads(),
    }
