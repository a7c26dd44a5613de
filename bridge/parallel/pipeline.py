"""Split a model by its layers: stages on devices of their own."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from bridge.parallel.devices import as_devices
from bridge.parallel.failure import ReplicaError
from bridge.parallel.gather import gather
from bridge.parallel.parallel_apply import parallel_apply
from bridge.parallel.scatter import scatter
from bridge.parallel.sync_batch_norm import synchronizes
from bridge.parallel.tree import move


class Pipeline(nn.Module):
    """Runs a batch in micro-batches through the stages of a model, each on a device of its own.

    At tick t stage s has micro-batch t - s, so that all stages have work once the first micro-batch
    reached the last. A thread starts them in this order: GPUs run at once, and the results are the
    same bits, run after run. The backward of a loss on the gathered outputs flows through all
    stages; until then the values of all micro-batches are kept. Batch normalization sees a
    micro-batch.

    Args:
        stages: modules; a tuple that one returns is the arguments of the next. They are moved to
            their devices.
        devices: one per stage.
        micro_batches: into how many parts a batch is split, in the sizes of ``torch.chunk``.

    Raises:
        ValueError: no device, another number of stages, no micro-batch, or a stage that
            synchronizes its replicas.

    Spec: R24.1, R24.2, R24.3. Source: Huang et al. 2019, https://arxiv.org/abs/1811.06965
    """

    def __init__(
        self,
        stages: Sequence[nn.Module],
        devices: Sequence[str | torch.device],
        micro_batches: int,
    ) -> None:
        """Move the stages to their devices."""
        super().__init__()
        self.devices = as_devices("Pipeline", devices)
        self.micro_batches = micro_batches
        if len(stages) != len(devices):
            expected = f"{len(devices)} stages, one per device"
            message = f"Pipeline: expected {expected}, got {len(stages)}"
            raise ValueError(message)
        if micro_batches < 1:
            message = f"Pipeline: expected at least 1 micro-batch, got {micro_batches}"
            raise ValueError(message)
        for index, stage in enumerate(stages):
            if synchronizes(stage):
                message = f"Pipeline: expected stages that do not synchronize, got stage {index}"
                raise ValueError(message)
        pairs = zip(stages, self.devices, strict=True)
        self.stages = nn.ModuleList(stage.to(device) for stage, device in pairs)

    def forward(self, *inputs: Any) -> Any:  # noqa: ANN401 - any tree
        """Run a batch through all stages and gather the outputs.

        Args:
            inputs: arguments of the first stage, trees of tensors ``(N, *)``.

        Returns:
            The outputs ``(N, *)`` of the last stage, on its device.

        Raises:
            ValueError: a batch that cannot be split.
            ReplicaError: at least one stage failed; it is named by its index.
        """
        parts = scatter(inputs, [self.devices[0]] * self.micro_batches)
        for tick in range(len(parts) + len(self.stages) - 1):
            first, last = max(0, tick - len(parts) + 1), min(tick, len(self.stages) - 1)
            places = [tick - stage for stage in range(first, last + 1)]
            outputs = self._run(first, [parts[place] for place in places])
            for place, output in zip(places, outputs, strict=True):
                parts[place] = output
        return gather(parts, self.devices[-1])

    def _run(self, first: int, parts: Sequence[Any]) -> list[Any]:
        """Run a micro-batch in each of the stages from ``first`` on."""
        active = slice(first, first + len(parts))
        devices = self.devices[active]
        shards = [move(part, device) for part, device in zip(parts, devices, strict=True)]
        try:
            return parallel_apply(self.stages[active], shards, devices=devices, workers=1)
        except ReplicaError as error:
            failures = [replace(f, replica=first + f.replica) for f in error.failures]
            raise ReplicaError(failures, len(parts)) from error.__cause__
