"""Run every replica on its shard."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import nn

from bridge.parallel.devices import device_of
from bridge.parallel.failure import Failure, ReplicaError
from bridge.parallel.group import Group, Outcome, outcome_of
from bridge.parallel.interrupts import held_back
from bridge.parallel.invoke import call
from bridge.parallel.random_states import RandomStates, draws
from bridge.parallel.sync_batch_norm import synchronizes
from bridge.parallel.thread_modes import ThreadModes


def parallel_apply(  # noqa: PLR0913 - one argument per option
    replicas: Sequence[Callable[..., Any]],
    shards: Sequence[Any],
    kwargs: Sequence[Mapping[str, Any]] | None = None,
    devices: Sequence[str | torch.device] | None = None,
    *,
    workers: int | None = None,
    states: RandomStates | None = None,
) -> list[Any]:
    """Run each replica on its shard and return the results in replica order.

    A shard that is a tuple holds positional arguments, a dict keyword arguments where a key names
    one of several parameters; any other shard is the one argument. Fewer shards than replicas leave
    the last replicas alone. All replicas run to their end; then every failure is reported at once.
    Modules that draw random numbers run in turn; modules that synchronize run all at once.

    Args:
        replicas: modules, or functions.
        shards: one per replica that runs.
        kwargs: keyword arguments, one mapping per shard.
        devices: where each replica runs; by default where its module is.
        workers: how many replicas run at once, each on a thread of its own; 1 runs them in turn.
            By default as many as torch's intra-op threads (on GPUs: all).
        states: a random state per replica: they run in turn, each on its own. Without, modules
            that draw share the caller's stream, one after the other.

    Returns:
        The results, in replica order.

    Raises:
        ValueError: more shards than replicas, no shard, another count of ``kwargs`` or devices, or
            no worker.
        ReplicaError: at least one replica failed.

    Spec: R3.1, R3.2, R3.3, R3.4, R3.5. Source: torch/nn/parallel/parallel_apply.py
    """
    if not 0 < len(shards) <= len(replicas):
        message = f"parallel_apply: expected 1 to {len(replicas)} shards, got {len(shards)}"
        raise ValueError(message)
    if kwargs is not None and len(kwargs) != len(shards):
        message = f"parallel_apply: expected {len(shards)} keyword mappings, got {len(kwargs)}"
        raise ValueError(message)
    if devices is not None and len(devices) != len(replicas):
        expected = f"{len(replicas)} devices, one per replica"
        message = f"parallel_apply: expected {expected}, got {len(devices)}"
        raise ValueError(message)
    if workers is not None and workers < 1:
        message = f"parallel_apply: expected at least 1 worker, got {workers}"
        raise ValueError(message)
    named = kwargs if kwargs is not None else [{}] * len(shards)
    chosen = devices if devices is not None else [_device(replica) for replica in replicas]
    places = [torch.device(device) for device in chosen]
    modes = ThreadModes()
    calls = zip(replicas, shards, named, places, strict=False)
    functions = [partial(_call, *call, modes=modes) for call in calls]
    outcomes = _outcomes(functions, replicas, workers or _default_workers(places), states)
    modes.end()
    failures = [
        Failure(index, places[index], error)
        for index, (_, error) in enumerate(outcomes)
        if error is not None
    ]
    if failures:
        raise ReplicaError(failures, len(outcomes)) from failures[0].error
    return [result for result, _ in outcomes]


def _outcomes(
    functions: Sequence[Callable[[], Any]],
    replicas: Sequence[object],
    workers: int,
    states: RandomStates | None,
) -> list[Outcome]:
    """Run the replicas in the way that their modules ask for."""
    modules = [module for module in map(_module, replicas) if module is not None]
    in_turn = states is not None or any(map(draws, modules))
    if len(functions) > 1 and any(map(synchronizes, modules)):
        return Group(len(functions), states, in_turn=in_turn).run(functions)
    if workers == 1 or len(functions) == 1 or in_turn:
        return [_in_turn(function, index, states) for index, function in enumerate(functions)]
    with ThreadPoolExecutor(min(workers, len(functions)), "replica") as pool:
        try:
            with held_back():
                futures = [pool.submit(outcome_of, function) for function in functions]
            return [future.result() for future in futures]
        except BaseException:  # Ctrl-C: those that have not begun need not.
            pool.shutdown(cancel_futures=True)
            raise


def _in_turn(function: Callable[[], Any], index: int, states: RandomStates | None) -> Outcome:
    """Run one replica on the caller's thread, on its random state where there is one."""
    if states is None:
        return outcome_of(function)
    states.enter(index)
    try:
        return outcome_of(function)
    finally:
        states.leave(index)


def _call(
    replica: Callable[..., Any],
    shard: object,
    named: Mapping[str, Any],
    device: torch.device,
    *,
    modes: ThreadModes,
) -> object:
    """Call one replica in the caller's modes."""
    with modes.entered(), _current(device):
        if isinstance(replica, nn.Module):
            return call(replica, shard, named)
        return replica(*(shard if isinstance(shard, tuple) else (shard,)), **named)


def _current(device: torch.device) -> AbstractContextManager[Any]:
    """Make a GPU the current one while its replica runs."""
    if device.type != "cuda":
        return nullcontext()
    guard: AbstractContextManager[Any] = torch.cuda.device(device)
    return guard


def _module(replica: object) -> nn.Module | None:
    """Find the module behind a replica: itself, or the attribute ``module`` of a function."""
    module = replica if isinstance(replica, nn.Module) else getattr(replica, "module", None)
    return module if isinstance(module, nn.Module) else None


def _device(replica: object) -> torch.device:
    """Name the device of a replica: its module's, without a module the CPU."""
    module = _module(replica)
    return torch.device("cpu") if module is None else device_of(module)


def _default_workers(devices: Sequence[torch.device]) -> int:
    """Take a thread per GPU, and on the CPU no more threads than torch may use."""
    return len(devices) if devices[0].type != "cpu" else torch.get_num_threads()
