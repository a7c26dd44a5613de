"""What a trainer does without gradients, and its means over many batches."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import nn

from bridge.parallel.forward import Loss, Reduction, Whole
from bridge.parallel.gather import gather
from bridge.parallel.parallel_apply import parallel_apply
from bridge.parallel.scatter import batch_size, scatter
from bridge.parallel.sums import in_order

Batches = Iterable[tuple[Any, Any]]


def predict(replicas: Sequence[nn.Module], devices: Sequence[torch.device], inputs: Any) -> Any:  # noqa: ANN401 - any tree
    """Run replicas in evaluation mode, without gradients, and gather the outputs.

    Spec: R8.4
    """
    modes = [(module, module.training) for replica in replicas for module in replica.modules()]
    try:
        for replica in replicas:
            replica.eval()
        with torch.no_grad():
            outputs = parallel_apply(replicas, scatter(inputs, devices), devices=devices)
        return gather(outputs, devices[0])
    finally:
        for module, training in modes:
            module.training = training


def measured(measure: Loss, outputs: object, batch: tuple[Any, Any], reduction: Reduction) -> Whole:
    """Measure one batch: the mean, and how many samples or counts it is over."""
    value, samples = measure(outputs, batch[1]), batch_size(batch)
    if isinstance(value, tuple):
        total, count = map(float, value)
        return (total / count if count else 0.0), count
    return (float(value) / samples if reduction == "sum" else float(value)), samples


def mean(wholes: Sequence[Whole]) -> float:
    """Average means by their counts, in order.

    Raises:
        ValueError: there is nothing to average.
    """
    if not wholes:
        message = "Trainer: expected at least 1 batch, got 0"
        raise ValueError(message)
    total = in_order(count for _, count in wholes)
    return in_order(value * (count / total) for value, count in wholes) if total else 0.0
