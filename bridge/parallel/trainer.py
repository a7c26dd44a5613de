"""The reference trainer: it only composes the verbs."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any, Literal, Protocol

import torch
from torch import nn
from torch.optim import Optimizer

from bridge.parallel.accumulator import Accumulator
from bridge.parallel.average import average, broadcast_gradients
from bridge.parallel.clip import clip_gradients
from bridge.parallel.devices import as_devices
from bridge.parallel.forward import Forward, Loss, Part, Reduction, backward
from bridge.parallel.gather import gather
from bridge.parallel.linear_scaling import LinearScaling, scaled
from bridge.parallel.parallel_apply import parallel_apply
from bridge.parallel.random_states import RandomStates, draws
from bridge.parallel.replicate import replicate
from bridge.parallel.resync import Buffers, resync
from bridge.parallel.scatter import batch_size, scatter
from bridge.parallel.state_dict import load_state_dict
from bridge.parallel.step import step
from bridge.parallel.sums import in_order
from bridge.parallel.sync_batch_norm import synchronizes
from bridge.parallel.transaction import Transaction

Batches = Iterable[tuple[Any, Any]]


class Scheduler(Protocol):
    """What the trainer asks of a learning-rate scheduler."""

    def step(self) -> None:
        """Move on by one update."""

    def state_dict(self) -> dict[str, Any]:
        """Return its state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state."""


class Trainer:
    """Trains one model on several replicas so that it comes out as on one device.

    Every replica's forward runs once a step, on its own shard; losses are weighted by sample count,
    so that a mean loss over uneven shards equals the mean loss over the whole batch. A step that
    fails leaves parameters, buffers, gradients, optimizer and random states as they were.

    Args:
        model: the model, on ``devices[0]``; it stays replica 0.
        optimizer: on the model's parameters; or, for mode ``"all"``, a function that makes one for
            the parameters of a replica.
        loss: ``(outputs, targets)`` to a scalar, or with reduction ``"count"`` to a sum and a
            count.
        devices: one per replica.
        reduction: what the loss is over its samples: ``"mean"``, ``"sum"``, or ``"count"``, a sum
            to be divided by what it counts: tokens, class weights, unmasked elements.
        mode: ``"master"`` steps replica 0's optimizer and resyncs; ``"all"`` steps one optimizer
            per replica on the same gradients.
        buffers: which buffers the replicas have after a step: ``"first"``, ``"mean"`` or
            ``"each"``.
        accumulate: how many batches make one update.
        clip_norm: the largest norm of all gradients, after the reduction.
        clip_value: the largest absolute value of a gradient, after the reduction.
        scheduler: makes the scheduler of an optimizer; it is stepped once an update.
        scaling: scales the learning rate for several replicas; without, it stays as it is.

    Raises:
        ValueError: an option out of range.

    Spec: R8.1, R8.2, R8.3, R8.4, R8.5, R8.6, R8.7, R20.1, R21.1
    """

    def __init__(  # noqa: PLR0913 - one argument per option
        self,
        model: nn.Module,
        optimizer: Optimizer | Callable[[Iterable[nn.Parameter]], Optimizer],
        loss: Loss,
        devices: Sequence[str | torch.device] = ("cpu",),
        *,
        reduction: Reduction = "mean",
        mode: Literal["master", "all"] = "master",
        buffers: Buffers = "first",
        accumulate: int = 1,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        scheduler: Callable[[Optimizer], Scheduler] | None = None,
        scaling: LinearScaling | None = None,
    ) -> None:
        """Replicate the model."""
        _check_choice("reduction", reduction, ("mean", "sum", "count"))
        _check_choice("mode", mode, ("master", "all"))
        _check_choice("buffers", buffers, ("first", "mean", "each"))
        if accumulate < 1:
            message = f"Trainer: expected accumulate of at least 1, got {accumulate}"
            raise ValueError(message)
        self.model = model
        self.loss = loss
        self.devices = as_devices("Trainer", devices)
        self.replicas = replicate(model, self.devices)
        self.optimizers = _optimizers(optimizer, self.replicas, mode)
        self.schedulers = [scheduler(own) for own in self.optimizers] if scheduler else []
        self.updates = 0
        self._reduction: Reduction = reduction
        self._mode = mode
        self._buffers: Buffers = buffers
        self._accumulate = accumulate
        self._clip = (clip_norm, clip_value)
        self._scaling = scaling
        self._states = RandomStates(self.devices)
        self._accumulator = Accumulator(list(model.parameters()))
        self._drew: bool | None = None

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer of replica 0."""
        return self.optimizers[0]

    def step(self, inputs: Any, targets: Any) -> float:  # noqa: ANN401 - any tree
        """Train on one batch and return its loss.

        Args:
            inputs: a tensor ``(N, *)`` or a tree; a tuple holds positional arguments.
            targets: a tensor ``(N, *)`` or a tree.

        Returns:
            The mean loss over the batch (with reduction ``"sum"`` the sum), before the update.

        Raises:
            ValueError: a batch that cannot be split.
            ReplicaError: at least one replica failed.

        Spec: R8.1, R8.2, R21.1
        """
        shards = scatter((inputs, targets), self.devices)
        try:
            return self._step(shards)
        except _LateDrawError:  # Undone; now the replicas run in turn.
            return self._step(shards)

    def flush(self) -> bool:
        """Update from the batches that wait for more, as at the end of an epoch.

        Returns:
            Whether there were any.

        Spec: R7.5
        """
        if not self._accumulator.batches:
            return False
        with self._transaction() as transaction:
            self._update(transaction)
        return True

    def fit(
        self,
        batches: Batches,
        epochs: int = 1,
        on_step: Callable[[int, float], None] | None = None,
    ) -> list[float]:
        """Train on every batch, ``epochs`` times.

        Args:
            batches: ``(inputs, targets)`` pairs, iterated anew each epoch.
            epochs: how often.
            on_step: called after each step with its number from 1 and its loss.

        Returns:
            The mean loss of each epoch over its samples.

        Spec: R8.3
        """
        history = []
        number = 0
        for _ in range(epochs):
            losses, counts = [], []
            for inputs, targets in batches:
                losses.append(self.step(inputs, targets))
                counts.append(batch_size((inputs, targets)))
                number += 1
                if on_step is not None:
                    on_step(number, losses[-1])
            self.flush()
            history.append(_mean(losses, counts))
        return history

    def predict(self, inputs: Any) -> Any:  # noqa: ANN401 - any tree
        """Run the model in evaluation mode, without gradients, and gather the outputs.

        Args:
            inputs: a tensor ``(N, *)`` or a tree; a tuple holds positional arguments.

        Returns:
            The outputs ``(N, *)`` on ``devices[0]``.

        Spec: R8.4
        """
        modes = [(m, m.training) for replica in self.replicas for m in replica.modules()]
        try:
            for replica in self.replicas:
                replica.eval()
            with torch.no_grad():
                outputs = parallel_apply(self.replicas, scatter(inputs, self.devices))
            return gather(outputs, self.devices[0])
        finally:
            for module, training in modes:
                module.training = training

    def evaluate(self, batches: Batches, measure: Loss | None = None) -> float:
        """Average a measure over all samples, in evaluation mode.

        Args:
            batches: ``(inputs, targets)`` pairs.
            measure: ``(outputs, targets)`` to the mean over the batch; the loss by default.

        Returns:
            The mean over all samples; of a loss with a sum and a count, over all counts.

        Spec: R8.4
        """
        values, counts = [], []
        for inputs, targets in batches:
            value = (measure or self.loss)(self.predict(inputs), targets)
            samples = batch_size((inputs, targets))
            total, count = value if isinstance(value, tuple) else (value, samples)
            values.append(float(total) / (count if isinstance(value, tuple) else 1))
            counts.append(count)
        return _mean(values, counts)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return the state of the model (an alias: the tensors are the model's own)."""
        return self.model.state_dict()

    def load_state_dict(self, state: dict[str, torch.Tensor], prefix: str = "") -> None:
        """Load a state into every replica, strictly.

        Args:
            state: names and tensors.
            prefix: taken off every name first, such as ``"module."``.

        Raises:
            RuntimeError: keys that are missing, unexpected, or of another shape or dtype.
        """
        load_state_dict(self.model, state, prefix)
        resync(self.replicas)

    def _step(self, shards: Sequence[Any]) -> float:
        """Train on the shards of one batch."""
        with self._transaction() as transaction:
            for replica in self.replicas:
                replica.zero_grad(set_to_none=True)
            parts = self._forward(shards)
            together = len(parts) > 1 and synchronizes(self.model)
            loss = backward(parts, self._reduction, together=together)
            average(self.replicas, reduction="sum", broadcast=False)
            if self._accumulate > 1:
                weight = in_order(count for _, count in parts)
                self._accumulator.add(1.0 if self._reduction == "sum" else weight)
            if self._accumulator.batches in (0, self._accumulate):
                self._update(transaction)
        return loss

    def _forward(self, shards: Sequence[Any]) -> list[Part]:
        """Run the forwards: in turn where the model draws, or until it is seen that it does not."""
        passes = [Forward(replica, self.loss, self._reduction) for replica in self.replicas]
        in_turn = self._drew is not False or draws(self.model)
        before = self._states.caller()
        states = self._states if in_turn else None
        parts: list[Part] = parallel_apply(passes, shards, devices=self.devices, states=states)
        drew = not all(map(torch.equal, before, self._states.caller()))
        self._drew = drew or bool(self._drew)
        if drew and not in_turn and len(shards) > 1:
            raise _LateDrawError
        return parts

    def _update(self, transaction: Transaction) -> None:
        """Clip the gradients, step the optimizers and their schedulers."""
        if self._accumulator.batches:
            self._accumulator.finish(mean=self._reduction != "sum")
        clip_gradients(self.model.parameters(), *self._clip)
        transaction.before_update()
        factor = 1.0 if self._scaling is None else self._scaling.at(self.updates)
        with ExitStack() as scale:
            for optimizer in self.optimizers:
                scale.enter_context(scaled(optimizer, factor))
            if self._mode == "master":
                step(self.replicas, self.optimizer, self._buffers)
            else:
                broadcast_gradients(self.replicas)
                step(self.replicas, self.optimizers, self._buffers)
        for scheduler in self.schedulers:
            scheduler.step()
        self.updates += 1

    def _transaction(self) -> Transaction:
        """Keep what a step may change."""
        items = (self.optimizers, self.schedulers)
        return Transaction(self.replicas, *items, self._states, self._accumulator)


class _LateDrawError(Exception):
    """A model drew for the first time while its replicas ran at once."""


def _optimizers(
    optimizer: Optimizer | Callable[[Iterable[nn.Parameter]], Optimizer],
    replicas: Sequence[nn.Module],
    mode: str,
) -> list[Optimizer]:
    """Make or take the optimizers that a mode needs."""
    if isinstance(optimizer, Optimizer):
        if mode == "all":
            message = "Trainer: expected a function that makes an optimizer, for mode all"
            raise ValueError(message)
        return [optimizer]
    count = len(replicas) if mode == "all" else 1
    return [optimizer(replica.parameters()) for replica in replicas[:count]]


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse an option that is none of the choices."""
    if value not in choices:
        message = f"Trainer: expected {name} {', '.join(choices)}, got {value}"
        raise ValueError(message)


def _mean(values: Sequence[float], counts: Sequence[float]) -> float:
    """Average values by count, in order."""
    total = in_order(counts)
    if not total:
        message = "Trainer: expected at least 1 batch, got 0"
        raise ValueError(message)
    return in_order(value * (count / total) for value, count in zip(values, counts, strict=True))
