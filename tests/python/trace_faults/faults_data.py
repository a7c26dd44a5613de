"""Faults of data: order, labels, preparation."""

# ruff: noqa: D102 - a fault is told by its class

from typing import Any, ClassVar

import torch

from tests.python.trace_faults.bed import Batch, Loop


class ShiftedBatches(Loop):
    """The first batch is left out."""

    says, at = "batch order", (0, "scatter", "inputs")

    def batches(self) -> list[Batch]:
        return self.data()[1 : self.steps + 1]


class ShuffledSamples(Loop):
    """The samples of a batch come in another order."""

    says, at = "sample order", (0, "scatter", "inputs")

    def batches(self) -> list[Batch]:
        return [(x.flip(0), y.flip(0)) for x, y in super().batches()]


class ShuffledLabels(Loop):
    """The labels of a batch come in another order."""

    says, at = "wrong label order", (0, "scatter", "targets")

    def batches(self) -> list[Batch]:
        return [(x, y.roll(1)) for x, y in super().batches()]


class ShiftedLabels(Loop):
    """The labels count from 1."""

    says, at = "labels shifted", (1, "scatter", "targets")

    def batches(self) -> list[Batch]:
        return [(x, (y + 1) % 4 if step else y) for step, (x, y) in enumerate(super().batches())]


class Unscaled(Loop):
    """The inputs are 255 times as large."""

    says, at = "inputs scaled", (0, "scatter", "inputs")

    def batches(self) -> list[Batch]:
        return [(x * 255, y) for x, y in super().batches()]


class Uncentered(Loop):
    """The mean is not taken off the inputs."""

    says, at = "inputs shifted", (0, "scatter", "inputs")

    def batches(self) -> list[Batch]:
        return [(x + 0.5, y) for x, y in super().batches()]


class SmallerBatch(Loop):
    """The batch is smaller."""

    says, at = "other batch size", (0, "scatter", "inputs")

    def batches(self) -> list[Batch]:
        return [(x[:6], y[:6]) for x, y in super().batches()]


class HiddenRateConfigured(Loop):
    """An option of the optimizer is another."""

    says, at = "optimizer option", (1, "step", "fc1.weight")
    options: ClassVar[dict[str, Any]] = {"lr": 0.05, "momentum": 0.5}
    dtype = torch.float64
