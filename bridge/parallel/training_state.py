"""The whole state of a training run, as a tree."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Protocol

import torch
from torch import nn
from torch.optim import Optimizer, lr_scheduler

from bridge.checkpoint.document import encode
from bridge.parallel.configuration import configuration, placed
from bridge.parallel.random_states import RandomStates
from bridge.parallel.resync import resync
from bridge.parallel.trainer_step import TrainerStep
from bridge.schedulers import load_state_dict as load_scheduler
from bridge.schedulers import state_dict as scheduler_state

KIND = "trainer"
VERSION = 1
KEYS = (
    "kind", "version", "configuration", "model", "buffers", "parameters", "optimizers",
    "schedulers", "random", "accumulator", "counts", "loader", "extra",
)  # fmt: skip
State = dict[str, Any]
# Schedulers have a base class of this name since 2.0, and one of another name before.
SCHEDULERS = (lr_scheduler.StepLR.__mro__[1], lr_scheduler.ReduceLROnPlateau)


class Stateful(Protocol):
    """What can be saved: a loader, a scheduler or an optimizer."""

    def state_dict(self) -> Any:  # noqa: ANN401 - any tree
        """Return its state."""

    def load_state_dict(self, state: Any, /) -> Any:  # noqa: ANN401 - any tree
        """Take a state."""


def gather_state(training: TrainerStep, loader: Stateful | None, extra: object) -> State:
    """Collect the state of a trainer, of its loader, and what the user puts beside it.

    Its tensors are those in use, but for the random states.

    Raises:
        TypeError, ValueError: a state of an optimizer, a scheduler or a loader, or an extra, that a
            checkpoint cannot hold; the class and the place are given.

    Spec: R28.1
    """
    batches, total, sums = training.accumulator.state
    counts = {"steps": training.steps, "updates": training.updates, "drew": training.drew}
    return {
        "kind": KIND,
        "version": VERSION,
        "configuration": configuration(training),
        "model": dict(training.replicas[0].state_dict()),
        "buffers": [apart(training, index) for index in range(len(training.replicas))],
        "parameters": placed(training),
        "optimizers": [_held(own, own.state_dict()) for own in training.optimizers],
        "schedulers": [_held(own, _scheduler_state(own)) for own in training.schedulers],
        "random": _random(training.states, len(training.replicas)),
        "accumulator": {"batches": batches, "total": total, "sums": list(sums)},
        "counts": {**counts, "open": training.open},
        "loader": None if loader is None else _held(loader, loader.state_dict()),
        "extra": _held(extra, extra),
    }


def apart(training: TrainerStep, index: int) -> dict[str, torch.Tensor]:
    """List the buffers of a replica that are not in the state of the model."""
    known = training.replicas[0].state_dict() if index == 0 else {}
    named = training.replicas[index].named_buffers()
    return {name: buffer for name, buffer in named if name not in known}


def take_model(training: TrainerStep, state: State) -> None:
    """Give every replica the state of the model and its own buffers; no gradient stays."""
    first = training.replicas[0]
    first.load_state_dict(state["model"])
    resync(training.replicas)
    with torch.no_grad():
        for replica, saved in zip(training.replicas, state["buffers"], strict=True):
            own = dict(replica.named_buffers())
            for name, value in saved.items():
                own[name].copy_(value)
    for parameter in _parameters(training.replicas):
        parameter.grad = None


def take_optimizers(training: TrainerStep, state: State) -> None:
    """Give optimizers and schedulers their states, with every bit and dtype as it was."""
    for optimizer, saved in zip(training.optimizers, state["optimizers"], strict=True):
        _load_optimizer(optimizer, saved)
    for scheduler, saved in zip(training.schedulers, state["schedulers"], strict=True):
        if isinstance(scheduler, SCHEDULERS):
            load_scheduler(scheduler, saved)
        else:
            scheduler.load_state_dict(saved)


def take_rest(training: TrainerStep, state: State) -> None:
    """Take random states, pending gradients and counts: what cannot fail once it is checked."""
    training.states.restore(restored_random(training, state["random"]))
    held = state["accumulator"]
    parameters = training.replicas[0].parameters()
    sums = [
        None if value is None else value.to(parameter.device)
        for parameter, value in zip(parameters, held["sums"], strict=True)
    ]
    training.accumulator.state = held["batches"], held["total"], sums
    counts = state["counts"]
    training.steps, training.updates = counts["steps"], counts["updates"]
    training.drew, training.open = counts["drew"], counts["open"]


def restored_random(training: TrainerStep, saved: State) -> list[list[torch.Tensor]]:
    """Make a snapshot of the saved random states; GPUs of which none was saved keep theirs."""
    present = training.states.snapshot()
    callers = len(present) - len(training.replicas) + 1
    cpu = [saved["cpu"][0]] * callers + saved["cpu"][1:]
    gpus = iter(saved["cuda"])
    same = len(saved["cuda"]) == sum(len(part) > 1 for part in present)
    return [
        [own, *((next(gpus) if same else part[1:]) if len(part) > 1 else [])]
        for own, part in zip(cpu, present, strict=True)
    ]


def _random(states: RandomStates, replicas: int) -> State:
    """Collect the random states: the caller's stream, then those of the other replicas."""
    snapshot = states.snapshot()
    callers = len(snapshot) - replicas + 1
    cpu = [snapshot[0][0], *(part[0] for part in snapshot[callers:])]
    return {"cpu": cpu, "cuda": [part[1:] for part in snapshot if len(part) > 1]}


def _scheduler_state(scheduler: Stateful) -> Any:  # noqa: ANN401 - any tree
    """Return the state of a scheduler, PyTorch's as both languages have it."""
    own = isinstance(scheduler, SCHEDULERS)
    return scheduler_state(scheduler) if own else scheduler.state_dict()


def _held(owner: object, state: Any) -> Any:  # noqa: ANN401 - any tree
    """Refuse a state that a checkpoint cannot hold, by the class that it is of."""
    try:
        encode(state)
    except (TypeError, ValueError) as error:
        message = f"save: {type(owner).__name__}: {str(error).removeprefix('write: ')}"
        raise type(error)(message) from None
    return state


def _load_optimizer(optimizer: Optimizer, saved: Mapping[str, Any]) -> None:
    """Load a state, whose tensors PyTorch casts to the dtypes of the parameters, as it was."""
    optimizer.load_state_dict(deepcopy(dict(saved)))
    if type(optimizer).load_state_dict is not Optimizer.load_state_dict:
        return
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for index, held in saved["state"].items():
        parameter = parameters[index]
        optimizer.state[parameter] = _as_saved(held, optimizer.state[parameter])


def _as_saved(saved: Any, loaded: Any) -> Any:  # noqa: ANN401 - any state
    """Copy a state to the devices where PyTorch has loaded it."""
    if isinstance(saved, torch.Tensor) and isinstance(loaded, torch.Tensor):
        return saved.to(loaded.device, copy=True)
    if isinstance(saved, dict):
        return {key: _as_saved(part, loaded[key]) for key, part in saved.items()}
    if isinstance(saved, list):
        return [_as_saved(*pair) for pair in zip(saved, loaded, strict=True)]
    return loaded


def _parameters(replicas: Sequence[nn.Module]) -> list[nn.Parameter]:
    """List the parameters of all replicas."""
    return [parameter for replica in replicas for parameter in replica.parameters()]
