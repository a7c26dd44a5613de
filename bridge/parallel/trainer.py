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
from bridge.parallel.evaluation import Batches, mean, measured, predict
from bridge.parallel.forward import Forward, Loss, Part, Reduction, Whole, backward
from bridge.parallel.interrupts import held_back
from bridge.parallel.linear_scaling import LinearScaling, scaled
from bridge.parallel.observer import Observer, watched
from bridge.parallel.parallel_apply import parallel_apply
from bridge.parallel.random_states import RandomStates, draws
from bridge.parallel.replicate import replicate
from bridge.parallel.resync import Buffers, resync
from bridge.parallel.scatter import scatter
from bridge.parallel.state_dict import load_state_dict
from bridge.parallel.step import step
from bridge.parallel.sync_batch_norm import synchronizes
from bridge.parallel.transaction import Transaction


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
        _check_limits(accumulate, clip_norm=clip_norm, clip_value=clip_value)
        self.model = model
        self.loss = loss
        self.devices = as_devices("Trainer", devices)
        self.replicas = replicate(model, self.devices)
        self.optimizers = _optimizers(optimizer, self.replicas, mode)
        self.schedulers = [scheduler(own) for own in self.optimizers] if scheduler else []
        self.updates = 0
        self.observer = Observer()
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
        loss, _ = self._train(inputs, targets)
        return loss

    def flush(self) -> bool:
        """Update from the batches that wait for more, as at the end of an epoch.

        Returns:
            Whether there were any.

        Spec: R7.5
        """
        if not self._accumulator.batches:
            return False
        with watched(self.observer), self._transaction() as transaction:
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
            The mean loss of each epoch over its samples; of a loss with a sum and a count, over
            all counts.

        Spec: R8.3
        """
        history = []
        number = 0
        for _ in range(epochs):
            wholes = []
            for inputs, targets in batches:
                loss, count = self._train(inputs, targets)
                wholes.append((loss / count if self._reduction == "sum" else loss, count))
                number += 1
                if on_step is not None:
                    on_step(number, loss)
            self.flush()
            history.append(mean(wholes))
        return history

    def predict(self, inputs: Any) -> Any:  # noqa: ANN401 - any tree
        """Run the model in evaluation mode, without gradients, and gather the outputs.

        Args:
            inputs: a tensor ``(N, *)`` or a tree; a tuple holds positional arguments.

        Returns:
            The outputs ``(N, *)`` on ``devices[0]``.

        Spec: R8.4
        """
        return predict(self.replicas, self.devices, inputs)

    def evaluate(self, batches: Batches, measure: Loss | None = None) -> float:
        """Average a measure over all samples, in evaluation mode.

        Args:
            batches: ``(inputs, targets)`` pairs.
            measure: ``(outputs, targets)`` to the mean over the batch; the loss by default.

        Returns:
            The mean over all samples; of a loss with a sum and a count, over all counts.

        Spec: R8.4
        """
        own = self._reduction if measure is None else "mean"
        chosen = measure or self.loss
        return mean(
            [
                measured(chosen, self.predict(inputs), (inputs, targets), own)
                for inputs, targets in batches
            ]
        )

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

    def _train(self, inputs: object, targets: object) -> Whole:
        """Train on one batch, and return its loss with what that is over."""
        with watched(self.observer):
            return self._attempt(inputs, targets)

    def _attempt(self, inputs: object, targets: object) -> Whole:
        """Train on one batch, if need be again."""
        shards = scatter((inputs, targets), self.devices)
        for index, (shard, wanted) in enumerate(shards):
            self.observer.inputs(shard, wanted, index)
        whole = self._step(shards)
        # A model that drew for the first time while its replicas ran at once: undone; now in turn.
        return whole or self._attempt(inputs, targets)

    def _step(self, shards: Sequence[Any]) -> Whole | None:
        """Train on the shards of one batch, or return None where the model drew unexpectedly."""
        in_turn = self._drew is not False or draws(self.model)
        with self._transaction() as transaction:
            whole = self._gradients(shards, self._states if in_turn else None)
            drew = transaction.drew()
            self._drew = drew or bool(self._drew)
            if drew and not in_turn and len(shards) > 1:
                transaction.roll_back()
                self.observer.undo()
                return None
            self.observer.gradients("backward")
            average(self.replicas, reduction="sum", broadcast=False)
            if self._accumulate > 1:
                self._accumulator.add(1.0 if self._reduction == "sum" else whole[1])
            if self._accumulator.batches in (0, self._accumulate):
                self._update(transaction)
        return whole

    def _gradients(self, shards: Sequence[Any], states: RandomStates | None) -> Whole:
        """Run forwards and backwards: in turn where the model draws, or may."""
        for replica in self.replicas:
            replica.zero_grad(set_to_none=True)
        passes = [Forward(replica, self.loss, self._reduction) for replica in self.replicas]
        parts: list[Part] = parallel_apply(passes, shards, devices=self.devices, states=states)
        for index, (loss, _) in enumerate(parts):
            self.observer.loss(loss, index)
        together = len(parts) > 1 and synchronizes(self.model)
        return backward(parts, self._reduction, together=together, states=states)

    def _update(self, transaction: Transaction) -> None:
        """Clip the gradients, step the optimizers and their schedulers."""
        if self._accumulator.batches:
            self._accumulator.finish(mean=self._reduction != "sum")
        if len(self.replicas) > 1 or self._accumulate > 1:
            self.observer.gradients("reduce")
        clip_gradients(self.model.parameters(), *self._clip)
        if any(self._clip):
            self.observer.gradients("clip")
        transaction.before_update()
        factor = 1.0 if self._scaling is None else self._scaling.at(self.updates)
        with held_back():
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
            transaction.commit()

    def _transaction(self) -> Transaction:
        """Keep what a step may change."""
        items = (self.optimizers, self.schedulers)
        return Transaction(self.replicas, *items, self._states, self._accumulator)


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


def _check_limits(accumulate: int, **limits: float | None) -> None:
    """Refuse numbers out of range."""
    if accumulate < 1:
        message = f"Trainer: expected accumulate of at least 1, got {accumulate}"
        raise ValueError(message)
    for name, limit in limits.items():
        if limit is not None and not limit > 0:
            message = f"Trainer: expected {name} above 0, got {limit}"
            raise ValueError(message)
