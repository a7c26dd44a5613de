"""Run every replica on its shard."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from bridge.parallel.devices import device_of
from bridge.parallel.failure import Failure, ReplicaError


def parallel_apply(
    replicas: Sequence[Callable[..., Any]],
    shards: Sequence[Any],
    kwargs: Sequence[Mapping[str, Any]] | None = None,
    devices: Sequence[str | torch.device] | None = None,
    *,
    workers: int | None = None,
) -> list[Any]:
    """Run each replica on its shard and return the results in replica order.

    A shard that is a tuple holds positional arguments; any other shard is the one argument. Fewer
    shards than replicas leave the last replicas alone. All replicas run to their end; then every
    failure is reported at once.

    Args:
        replicas: modules, or functions.
        shards: one per replica that runs.
        kwargs: keyword arguments, one mapping per shard.
        devices: where each replica runs; by default where its module is.
        workers: how many replicas run at once, each on a thread of its own; 1 runs them in turn.
            By default as many as torch's intra-op threads (on GPUs: all).

    Returns:
        The results, in replica order.

    Raises:
        ValueError: more shards than replicas, no shard, or another count of ``kwargs``.
        ReplicaError: at least one replica failed.

    Spec: R3.1, R3.2, R3.3, R3.4. Source: torch/nn/parallel/parallel_apply.py
    """
    if not 0 < len(shards) <= len(replicas):
        message = f"parallel_apply: expected 1 to {len(replicas)} shards, got {len(shards)}"
        raise ValueError(message)
    if kwargs is not None and len(kwargs) != len(shards):
        message = f"parallel_apply: expected {len(shards)} keyword mappings, got {len(kwargs)}"
        raise ValueError(message)
    named = kwargs if kwargs is not None else [{}] * len(shards)
    chosen = devices if devices is not None else [_device(replica) for replica in replicas]
    places = [torch.device(device) for device in chosen]
    calls = list(zip(replicas, shards, named, places, strict=False))
    workers = workers or _default_workers(places)
    grad = torch.is_grad_enabled()
    if workers == 1 or len(calls) == 1:
        outcomes = [_run(*call, grad=grad) for call in calls]
    else:
        with ThreadPoolExecutor(min(workers, len(calls)), "replica") as pool:
            outcomes = list(pool.map(lambda call: _run(*call, grad=grad), calls))
    failures = [
        Failure(index, places[index], error)
        for index, (_, error) in enumerate(outcomes)
        if error is not None
    ]
    if failures:
        raise ReplicaError(failures, len(calls)) from failures[0].error
    return [result for result, _ in outcomes]


def _run(
    replica: Callable[..., Any],
    shard: object,
    named: Mapping[str, Any],
    device: torch.device,
    *,
    grad: bool,
) -> tuple[Any, Exception | None]:
    """Run one replica in the caller's grad mode and keep its result or its failure."""
    arguments = shard if isinstance(shard, tuple) else (shard,)
    try:
        with torch.set_grad_enabled(grad), _current(device):
            return replica(*arguments, **named), None
    except Exception as error:  # noqa: BLE001 - reported by the caller with its replica
        return None, error


def _current(device: torch.device) -> AbstractContextManager[Any]:
    """Make a GPU the current one while its replica runs."""
    if device.type != "cuda":
        return nullcontext()
    guard: AbstractContextManager[Any] = torch.cuda.device(device)
    return guard


def _device(replica: object) -> torch.device:
    """Name the device of a replica: a module's own, a function's the CPU."""
    return device_of(replica) if isinstance(replica, nn.Module) else torch.device("cpu")


def _default_workers(devices: Sequence[torch.device]) -> int:
    """Take a thread per GPU, and on the CPU no more threads than torch may use."""
    return len(devices) if devices[0].type != "cpu" else torch.get_num_threads()
