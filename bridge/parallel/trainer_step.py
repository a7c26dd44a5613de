"""One step of a trainer: it makes gradients, reduces them and updates from them."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer, lr_scheduler

from bridge.parallel.accumulator import Accumulator
from bridge.parallel.average import average, broadcast_gradients
from bridge.parallel.clip import clip_gradients
from bridge.parallel.follow import follow
from bridge.parallel.forward import Forward, Loss, Part, Whole, backward
from bridge.parallel.interrupts import held_back
from bridge.parallel.linear_scaling import scaled
from bridge.parallel.observer import Observer, watched
from bridge.parallel.parallel_apply import parallel_apply
from bridge.parallel.random_states import RandomStates, draws
from bridge.parallel.scatter import scatter
from bridge.parallel.step import step
from bridge.parallel.sync_batch_norm import synchronizes
from bridge.parallel.trainer_options import Scheduler, TrainerOptions
from bridge.parallel.transaction import Transaction


class TrainerStep:
    """Trains replicas on one batch at a time; a step that fails changes nothing.

    Args:
        replicas: the modules; the first is the model.
        optimizers: that of the model, or in mode ``"all"`` one per replica.
        loss: ``(outputs, targets)`` to a scalar, or to a sum and a count.
        devices: one per replica.
        options: what else there is to say.

    Spec: R8.1, R20.1, R20.3, R21.1
    """

    def __init__(
        self,
        replicas: Sequence[nn.Module],
        optimizers: Sequence[Optimizer],
        loss: Loss,
        devices: Sequence[torch.device],
        options: TrainerOptions,
    ) -> None:
        """Make the schedulers, and start without gradients."""
        self.loss = loss
        self.updates = self.steps = 0
        self.observer = Observer()
        self.options = options
        self.replicas = replicas
        self.optimizers = optimizers
        self.schedulers = _schedulers(options.scheduler, optimizers)
        self._devices = devices
        self.states = RandomStates(devices)
        self.accumulator = Accumulator(list(replicas[0].parameters()))
        self.drew: bool | None = None
        self.open = False

    def train(self, inputs: Any, targets: Any) -> Whole:  # noqa: ANN401 - any tree
        """Train on one batch, and return its loss with what that is over."""
        with watched(self.observer):
            return self._train(inputs, targets)

    def flush(self) -> bool:
        """Update from the batches that wait for more, and tell whether there were any."""
        if not self.accumulator.batches:
            return False
        with watched(self.observer), self.transaction() as transaction:
            self._update(transaction)
        return True

    def _train(self, inputs: object, targets: object) -> Whole:
        """Train on one batch, if need be again."""
        shards = scatter((inputs, targets), self._devices)
        for index, (shard, wanted) in enumerate(shards):
            self.observer.inputs(shard, wanted, index)
        whole = self._attempt(shards)
        if whole is None:
            # It drew for the first time while its replicas ran at once: undone; now in turn.
            return self._train(inputs, targets)
        self.steps += 1
        return whole

    def _attempt(self, shards: Sequence[Any]) -> Whole | None:
        """Train on the shards of one batch, or return None where the model drew unexpectedly."""
        in_turn = self.drew is not False or draws(self.replicas[0])
        with self.transaction() as transaction:
            whole = self._gradients(shards, self.states if in_turn else None)
            drew = transaction.drew()
            self.drew = drew or bool(self.drew)
            if drew and not in_turn and len(shards) > 1:
                transaction.roll_back()
                self.observer.undo()
                return None
            self.observer.gradients("backward")
            average(self.replicas, reduction="sum", broadcast=False)
            if self.options.accumulate > 1:
                self.accumulator.add(1.0 if self.options.reduction == "sum" else whole[1])
            if self.accumulator.batches in (0, self.options.accumulate):
                self._update(transaction)
        return whole

    def _gradients(self, shards: Sequence[Any], states: RandomStates | None) -> Whole:
        """Run forwards and backwards: in turn where the model draws, or may."""
        follow(self.replicas, self.options.buffers)
        for replica in self.replicas:
            replica.zero_grad(set_to_none=True)
        reduction = self.options.reduction
        passes = [Forward(replica, self.loss, reduction) for replica in self.replicas]
        parts: list[Part] = parallel_apply(passes, shards, devices=self._devices, states=states)
        for index, (loss, _) in enumerate(parts):
            self.observer.loss(loss, index)
        together = len(parts) > 1 and synchronizes(self.replicas[0])
        return backward(parts, reduction, together=together, states=states)

    def _update(self, transaction: Transaction) -> None:
        """Clip the gradients, step the optimizers and their schedulers."""
        options = self.options
        if self.accumulator.batches:
            self.accumulator.finish(mean=options.reduction != "sum")
        if len(self.replicas) > 1 or options.accumulate > 1:
            self.observer.gradients("reduce")
        limits = (options.clip_norm, options.clip_value)
        clip_gradients(self.replicas[0].parameters(), *limits)
        if any(limits):
            self.observer.gradients("clip")
        transaction.before_update()
        factor = 1.0 if options.scaling is None else options.scaling.at(self.updates)
        with held_back():
            with ExitStack() as scale:
                for optimizer in self.optimizers:
                    scale.enter_context(scaled(optimizer, factor))
                if options.mode == "master":
                    step(self.replicas, self.optimizers[0], options.buffers)
                else:
                    broadcast_gradients(self.replicas)
                    step(self.replicas, self.optimizers, options.buffers)
            for scheduler in self.schedulers:
                scheduler.step()
            self.updates += 1
            transaction.commit()

    def transaction(self) -> Transaction:
        """Keep what a step may change."""
        items = (self.optimizers, self.schedulers)
        return Transaction(self.replicas, *items, self.states, self.accumulator)


def _schedulers(
    make: Callable[[Optimizer], Scheduler] | None, optimizers: Sequence[Optimizer]
) -> list[Scheduler]:
    """Make the schedulers, of which none may need a metric."""
    made = [make(own) for own in optimizers] if make else []
    if any(isinstance(own, lr_scheduler.ReduceLROnPlateau) for own in made):
        expected = "expected a scheduler that steps without a metric"
        message = f"Trainer: {expected}, got ReduceLROnPlateau: step it yourself, after evaluate"
        raise ValueError(message)
    return made
