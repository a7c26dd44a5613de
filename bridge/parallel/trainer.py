"""The reference trainer: it only composes the verbs."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from bridge.parallel.average import average
from bridge.parallel.devices import as_devices
from bridge.parallel.gather import gather
from bridge.parallel.parallel_apply import parallel_apply
from bridge.parallel.replicate import replicate
from bridge.parallel.resync import resync
from bridge.parallel.scatter import batch_size, scatter
from bridge.parallel.step import step

Loss = Callable[[Any, Any], torch.Tensor]
Batches = Iterable[tuple[Any, Any]]


class Trainer:
    """Trains one model on several replicas so that it comes out as on one device.

    Every replica's forward runs once a step, on its own shard; gradients are averaged by sample
    count, so that a mean loss over uneven shards equals the mean loss over the whole batch.

    Args:
        model: the model, on ``devices[0]``; it stays replica 0.
        optimizer: on the model's parameters.
        loss: ``(outputs, targets)`` to the mean loss over the samples, a scalar.
        devices: one per replica.

    Spec: R8.1, R8.2, R8.3, R8.4
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        loss: Loss,
        devices: Sequence[str | torch.device] = ("cpu",),
    ) -> None:
        """Replicate the model."""
        self.model = model
        self.optimizer = optimizer
        self.loss = loss
        self.devices = as_devices("Trainer", devices)
        self.replicas = replicate(model, self.devices)

    def step(self, inputs: Any, targets: Any) -> float:  # noqa: ANN401 - any tree
        """Train on one batch and return its mean loss.

        Args:
            inputs: a tensor ``(N, *)`` or a tree; a tuple holds positional arguments.
            targets: a tensor ``(N, *)`` or a tree.

        Returns:
            The mean loss over the batch, before the update.

        Raises:
            ValueError: a batch that cannot be split.
            ReplicaError: at least one replica failed.

        Spec: R8.1, R8.2
        """
        shards = scatter((inputs, targets), self.devices)
        counts = [batch_size(shard) for shard in shards]
        for replica in self.replicas:
            replica.zero_grad(set_to_none=True)
        passes = [partial(self._forward_backward, replica) for replica in self.replicas]
        losses = parallel_apply(passes, shards, devices=self.devices)
        average(self.replicas[: len(shards)], counts, broadcast=False)
        step(self.replicas, self.optimizer)
        return _mean(losses, counts)

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
        modes = [[(m, m.training) for m in replica.modules()] for replica in self.replicas]
        try:
            for replica in self.replicas:
                replica.eval()
            with torch.no_grad():
                outputs = parallel_apply(self.replicas, scatter(inputs, self.devices))
            return gather(outputs, self.devices[0])
        finally:
            for module, training in (pair for mode in modes for pair in mode):
                module.training = training

    def evaluate(self, batches: Batches, measure: Loss | None = None) -> float:
        """Average a measure over all samples, in evaluation mode.

        Args:
            batches: ``(inputs, targets)`` pairs.
            measure: ``(outputs, targets)`` to the mean over the batch; the loss by default.

        Returns:
            The mean over all samples.

        Spec: R8.4
        """
        measure = measure or self.loss
        values, counts = [], []
        for inputs, targets in batches:
            values.append(float(measure(self.predict(inputs), targets)))
            counts.append(batch_size((inputs, targets)))
        return _mean(values, counts)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return the state of the model (an alias: the tensors are the model's own)."""
        return self.model.state_dict()

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Load a state into every replica, strictly.

        Raises:
            RuntimeError: keys that are missing, unexpected or of another shape.
        """
        self.model.load_state_dict(state)
        resync(self.replicas)

    def _forward_backward(self, replica: nn.Module, inputs: object, targets: object) -> float:
        """Run one replica on its shard and leave its gradients."""
        arguments = inputs if isinstance(inputs, tuple) else (inputs,)
        loss = self.loss(replica(*arguments), targets)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.item()


def _mean(values: Sequence[float], counts: Sequence[int]) -> float:
    """Average values by sample count, in order."""
    if not counts:
        message = "Trainer: expected at least 1 batch, got 0"
        raise ValueError(message)
    total = sum(counts)
    return sum(value * (count / total) for value, count in zip(values, counts, strict=True))
