"""The reference trainer: it only composes the verbs."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from bridge.parallel.devices import as_devices
from bridge.parallel.evaluation import Batches, mean, measured, predict
from bridge.parallel.follow import follow
from bridge.parallel.forward import Loss, Reduction
from bridge.parallel.linear_scaling import LinearScaling
from bridge.parallel.observer import Observer
from bridge.parallel.replicate import replicate
from bridge.parallel.resync import Buffers, resync
from bridge.parallel.state_dict import load_state_dict
from bridge.parallel.trainer_options import Mode, Scheduler, TrainerOptions
from bridge.parallel.trainer_step import TrainerStep
from bridge.parallel.training_checkpoint import load_training, save_training
from bridge.parallel.training_state import Stateful


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
        factory: makes a fresh model, for one that cannot be copied, as in :func:`replicate`.

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
        mode: Mode = "master",
        buffers: Buffers = "first",
        accumulate: int = 1,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        scheduler: Callable[[Optimizer], Scheduler] | None = None,
        scaling: LinearScaling | None = None,
        factory: Callable[[], nn.Module] | None = None,
    ) -> None:
        """Replicate the model."""
        options = TrainerOptions(
            reduction, mode, buffers, accumulate, clip_norm, clip_value, scheduler, scaling, factory
        )
        self.model = model
        self.devices = as_devices("Trainer", devices)
        self.replicas = replicate(model, self.devices, factory)
        self.optimizers = _optimizers(optimizer, self.replicas, mode)
        self._reduction: Reduction = reduction
        self._buffers: Buffers = buffers
        self._step = TrainerStep(self.replicas, self.optimizers, loss, self.devices, options)

    @property
    def loss(self) -> Loss:
        """The loss."""
        return self._step.loss

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer of replica 0."""
        return self.optimizers[0]

    @property
    def schedulers(self) -> list[Scheduler]:
        """The schedulers of the optimizers."""
        return self._step.schedulers

    @property
    def updates(self) -> int:
        """How many updates there were."""
        return self._step.updates

    @property
    def steps(self) -> int:
        """How many batches it was trained on."""
        return self._step.steps

    @property
    def observer(self) -> Observer:
        """Who watches the steps."""
        return self._step.observer

    @observer.setter
    def observer(self, observer: Observer) -> None:
        self._step.observer = observer

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
        return self._step.train(inputs, targets)[0]

    def flush(self) -> bool:
        """Update from the batches that wait for more, as at the end of an epoch.

        Returns:
            Whether there were any.

        Spec: R7.5
        """
        return self._step.flush()

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

        Raises:
            ValueError: an epoch without a batch, or a negative number of epochs.

        Spec: R8.3
        """
        if epochs < 0:
            message = f"Trainer: expected epochs of at least 0, got {epochs}"
            raise ValueError(message)
        if self._step.open and getattr(batches, "position", None) == 0:
            # Broken off, or saved, between the last batch of an epoch and its end.
            self.flush()
        history = []
        number = 0
        for _ in range(epochs):
            wholes = []
            for inputs, targets in batches:
                loss, count = self._step.train(inputs, targets)
                self._step.open = True
                wholes.append((loss / count if self._reduction == "sum" else loss, count))
                number += 1
                if on_step is not None:
                    on_step(number, loss)
            self.flush()
            self._step.open = False
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
        follow(self.replicas, self._buffers)
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

    def save(
        self,
        path: str | os.PathLike[str],
        loader: Stateful | None = None,
        extra: Any = None,  # noqa: ANN401 - any tree
    ) -> None:
        """Write the whole state of the training run, in place of the old file as a whole.

        That is the model, optimizers, schedulers, random states, gradients that wait for more
        batches, counts, and the position of the loader. Nothing changes, and nothing is drawn.

        Args:
            path: the file, which either language reads.
            loader: where the batches come from, with a ``state_dict``.
            extra: what to put beside it: a tree of dicts, lists, tuples, tensors and plain values.

        Raises:
            ValueError, TypeError: a state or an extra that a file cannot hold, by its place.
            OSError: the file cannot be written; the old one is whole.

        Spec: R28.1, R28.4
        """
        save_training(self._step, path, loader, extra)

    def load(self, path: str | os.PathLike[str], loader: Stateful | None = None) -> Any:  # noqa: ANN401 - any tree
        """Go on where the run was that either language saved, with every bit as it was.

        Args:
            path: the file.
            loader: on the same data, with the same options, where one was saved.

        Returns:
            What was put beside the state.

        Raises:
            CheckpointError: no such file of this version, or one of another trainer: all that
                differs is listed. Nothing changes.
            FileNotFoundError: no such file.

        Spec: R28.2, R28.3
        """
        return load_training(self._step, path, loader)

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
