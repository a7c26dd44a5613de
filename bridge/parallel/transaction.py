"""Undo: a step that fails leaves everything as it was."""

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim import SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop, lr_scheduler

from bridge.parallel.accumulator import Accumulator
from bridge.parallel.buffer_snapshot import BufferSnapshot
from bridge.parallel.field_snapshot import FieldSnapshot
from bridge.parallel.random_states import RandomStates

if TYPE_CHECKING:
    from typing_extensions import Self

OPTIMIZERS = (SGD, Adagrad, Adam, AdamW, RMSprop)
SCHEDULERS = (
    lr_scheduler.StepLR,
    lr_scheduler.MultiStepLR,
    lr_scheduler.ConstantLR,
    lr_scheduler.LinearLR,
    lr_scheduler.ExponentialLR,
    lr_scheduler.CosineAnnealingLR,
)
"""Those that check their arguments first and then only do arithmetic."""
DIVISORS = ("step_size", "factor", "start_factor", "T_max")
"""Options of these schedulers that they divide by."""


class Transaction:
    """What a step may change, kept so that it can be given back.

    Gradients are kept by reference: a step makes new ones. Buffers and random states are copied, as
    they change in the forward. Parameters and optimizers change only in the update: they are copied
    by :meth:`before_update`, and only where an update can fail half-way.

    Args:
        replicas: the modules.
        optimizers: theirs.
        schedulers: those of the optimizers.
        states: the random states of the replicas.
        accumulator: the gradients of earlier batches.

    Spec: R21.1, R21.2
    """

    def __init__(
        self,
        replicas: Sequence[nn.Module],
        optimizers: Sequence[Optimizer],
        schedulers: Sequence[Any],
        states: RandomStates,
        accumulator: Accumulator,
    ) -> None:
        """Keep gradients, buffers and random states."""
        self._states = states
        self._accumulator = accumulator
        self._accumulated = accumulator.state
        self._stateful = [*optimizers, *schedulers]
        self._parameters = [p for replica in replicas for p in replica.parameters()]
        self._gradients = [parameter.grad for parameter in self._parameters]
        self._buffers = BufferSnapshot(replicas)
        self._random = states.snapshot()
        self._values: list[torch.Tensor] = []
        self._updates: list[FieldSnapshot] = []
        self._committed = False

    def __enter__(self) -> "Self":
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give everything back where the step fails, also at Ctrl-C."""
        if kind is not None and not self._committed:
            self.roll_back()

    def commit(self) -> None:
        """Keep what the step has done, whatever comes."""
        self._committed = True

    def before_update(self, *, always: bool = False) -> None:
        """Copy parameters and optimizers, unless nothing in the update can fail half-way.

        That holds for those of PyTorch's own that are listed here, for dense gradients, once their
        state exists.

        Args:
            always: for another change than an update.
        """
        if not always and all(map(_cannot_fail, self._stateful)):
            return
        self._values = [parameter.detach().clone() for parameter in self._parameters]
        self._updates = [FieldSnapshot(item, self._parameters) for item in self._stateful]

    def drew(self) -> bool:
        """Tell whether anything has drawn random numbers since the beginning."""
        return self._states.moved(self._random)

    def roll_back(self) -> None:
        """Give everything back."""
        self._states.restore(self._random)
        self._accumulator.state = self._accumulated
        self._buffers.restore()
        with torch.no_grad():
            for parameter, value in zip(self._parameters, self._values):  # noqa: B905 - without values
                parameter.copy_(value)
        for parameter, gradient in zip(self._parameters, self._gradients, strict=True):
            parameter.grad = gradient
        for update in self._updates:
            update.restore()


def _cannot_fail(item: object) -> bool:
    """Tell whether an optimizer or scheduler is listed and past what can fail."""
    if type(item) in SCHEDULERS:
        return all(getattr(item, name, 1) != 0 for name in DIVISORS)
    if type(item) not in OPTIMIZERS or not isinstance(item, Optimizer):
        return False
    hooks = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")  # since PyTorch 2.0
    if any(getattr(item, name, None) for name in hooks):
        return False
    parameters = (p for group in item.param_groups for p in group["params"])
    moved = [p for p in parameters if p.grad is not None]
    if any(p.grad.layout != torch.strided for p in moved):
        return False
    return type(item) is SGD or all(p in item.state for p in moved)
