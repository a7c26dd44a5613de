"""Puts what a recorder is shown into records."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from bridge.parallel.leaves import tensors
from bridge.trace import training_state
from bridge.trace.call_site import call_site
from bridge.trace.keeper import Entry, Keeper
from bridge.trace.record import Record
from bridge.trace.writer import Writer


class Scribe:
    """Writes the records of one step after the other.

    Args:
        writer: takes the records.
        keeper: takes tensors down.
        optimizers: one, or one per replica.

    Spec: R30.1, R30.5
    """

    def __init__(self, writer: Writer, keeper: Keeper, optimizers: Sequence[Optimizer]) -> None:
        """Begin with step 0."""
        self._writer = writer
        self._keeper = keeper
        self._optimizers = optimizers
        self._counts: Counter[tuple[str, int, str]] = Counter()
        self.number = 0

    def write(self, entries: list[Entry]) -> None:
        """Write entries that others made."""
        self._writer.write(entries)

    def end_step(self) -> None:
        """Go on to the next step."""
        self._counts.clear()
        self.number += 1

    def configuration(self, model: nn.Module) -> None:
        """Write what does not change."""
        for name, part, value in training_state.configuration(model, self._optimizers):
            self.value("init", 0, "configuration", name, part, value)

    def state(self, phase: str, index: int, replica: nn.Module) -> None:
        """Write parameters and buffers, and what belongs to the optimizer of a replica."""
        for kind, name, tensor in training_state.tensors(replica):
            self.tensor(phase, index, kind, name, "", tensor)
        if index < len(self._optimizers):
            state = training_state.optimizer_state(self._optimizers[index], replica)
            for name, part, value in state:
                if isinstance(value, torch.Tensor):
                    self.tensor(phase, index, "optimizer state", name, part, value)
                else:
                    self.value(phase, index, "optimizer state", name, part, value)
        if index == 0:
            for name, part, rate in training_state.learning_rates(self._optimizers):
                self.value(phase, 0, "learning rate", name, part, rate)
            self.tensor(phase, 0, "random state", "cpu", "", torch.get_rng_state())

    def gradients(self, phase: str, index: int, replica: nn.Module) -> None:
        """Write the gradients of parameters; None is a value too."""
        for name, parameter in replica.named_parameters():
            if parameter.grad is None:
                self.value(phase, index, "gradient", name)
            else:
                self.tensor(phase, index, "gradient", name, "", parameter.grad)

    def unseen(self, index: int, name: str) -> None:
        """Write that a layer was not observed."""
        reason = "no call of the layer was seen in this step"
        record = Record(self.number, "forward", index, "activation", name, unobserved=reason)
        self._writer.write([(record, None)])

    def tree(self, phase: str, index: int, kind: str, name: str, tree: object) -> None:
        """Write the tensors of a tree, as one more call of that name."""
        call = self._counts[phase, index, name]
        self._counts[phase, index, name] += 1
        site = call_site()
        for part, tensor in enumerate(tensors(tree)):
            place = (self.number, phase, index, kind, name, call, str(part))
            self._writer.write([self._keeper.entry(Record(*place, at=site), tensor)])

    def tensor(  # noqa: PLR0913, PLR0917 - one argument per part of the key
        self, phase: str, index: int, kind: str, name: str, part: str, tensor: torch.Tensor
    ) -> None:
        """Write one tensor."""
        record = Record(self.number, phase, index, kind, name, part=part)
        self._writer.write([self._keeper.entry(record, tensor)])

    def value(  # noqa: PLR0913, PLR0917 - one argument per part of the key
        self,
        phase: str,
        index: int,
        kind: str,
        name: str,
        part: str = "",
        value: Any = None,  # noqa: ANN401 - what JSON has
    ) -> None:
        """Write one value that is no tensor."""
        record = Record(self.number, phase, index, kind, name, part=part, value=value)
        self._writer.write([(record, None)])
