"""Undo: a step that fails leaves everything as it was."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim import Optimizer

from bridge.parallel.accumulator import Accumulator
from bridge.parallel.random_states import RandomStates

if TYPE_CHECKING:
    from typing_extensions import Self


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
        buffers = [buffer for replica in replicas for buffer in replica.buffers()]
        self._buffers = [(buffer, buffer.detach().clone()) for buffer in buffers]
        self._random = states.snapshot()
        self._values: list[torch.Tensor] = []
        self._updates: list[Mapping[str, Any]] = []

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
        if kind is not None:
            self._roll_back()

    def before_update(self) -> None:
        """Copy parameters and optimizers, unless nothing in the update can fail half-way.

        PyTorch's own optimizers check their arguments first and then only do arithmetic; once their
        state exists, nothing of that fails for dense gradients.
        """
        if all(map(_cannot_fail, self._stateful)):
            return
        self._values = [parameter.detach().clone() for parameter in self._parameters]
        self._updates = [deepcopy(item.state_dict()) for item in self._stateful]

    def _roll_back(self) -> None:
        """Give everything back."""
        self._states.restore(self._random)
        self._accumulator.state = self._accumulated
        with torch.no_grad():
            for buffer, value in self._buffers:
                buffer.copy_(value)
            for parameter, value in zip(self._parameters, self._values, strict=False):
                parameter.copy_(value)
        for parameter, gradient in zip(self._parameters, self._gradients, strict=True):
            parameter.grad = gradient
        for item, state in zip(self._stateful, self._updates, strict=False):
            item.load_state_dict(dict(state))


def _cannot_fail(item: object) -> bool:
    """Tell whether an optimizer or scheduler is PyTorch's own and past what can fail.

    That is: schedulers that call no function of the user's, SGD, and other optimizers whose state
    exists; all with dense gradients.
    """
    kind = type(item)
    if kind.__module__.partition(".")[0] != "torch" or hasattr(item, "lr_lambdas"):
        return False
    if not isinstance(item, Optimizer):
        return True
    parameters = (p for group in item.param_groups for p in group["params"])
    moved = [p for p in parameters if p.grad is not None]
    if any(p.grad.layout != torch.strided for p in moved):
        return False
    return kind is torch.optim.SGD or all(p in item.state for p in moved)
