"""Training runs in files, of which nothing is taken before all is checked."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from bridge.checkpoint import CheckpointError, read, write
from bridge.parallel.configuration import differences, misplaced
from bridge.parallel.interrupts import held_back
from bridge.parallel.state_dict import faults
from bridge.parallel.trainer_step import TrainerStep
from bridge.parallel.training_state import (
    KEYS,
    KIND,
    VERSION,
    State,
    Stateful,
    apart,
    gather_state,
    take_model,
    take_optimizers,
    take_rest,
)


def save_training(
    training: TrainerStep,
    path: str | os.PathLike[str],
    loader: Stateful | None,
    extra: object,
) -> None:
    """Write the whole state of a trainer.

    Spec: R28.1
    """
    write(gather_state(training, loader, extra), path)


def load_training(
    training: TrainerStep, path: str | os.PathLike[str], loader: Stateful | None
) -> Any:  # noqa: ANN401 - any tree
    """Take the whole state of a trainer, and return what was put beside it.

    Spec: R28.2, R28.3
    """
    state = _checked(training, read(path), loader, Path(path).name)
    before = None if loader is None else loader.state_dict()
    with held_back(), training.transaction() as transaction:
        transaction.before_update(always=True)
        take_model(training, state)
        take_optimizers(training, state)
        try:
            if loader is not None:
                loader.load_state_dict(state["loader"])
        except BaseException:
            if loader is not None:
                loader.load_state_dict(before)
            raise
        take_rest(training, state)
        transaction.commit()
    return state["extra"]


def _checked(
    training: TrainerStep,
    state: Any,  # noqa: ANN401 - any tree
    loader: Stateful | None,
    name: str,
) -> State:
    """Refuse what is not the state of a trainer such as this one, with all that differs."""
    if not isinstance(state, dict) or state.get("kind") != KIND:
        message = f"load: expected the state of a trainer in {name}, got another tree"
        raise CheckpointError(message)
    if state.get("version") != VERSION:
        expected = f"version {VERSION} of a trainer's state in {name}"
        message = f"load: expected {expected}, got {state.get('version')}"
        raise CheckpointError(message)
    if set(state) != set(KEYS):
        odd = ", ".join(sorted(set(state) ^ set(KEYS), key=str))
        message = f"load: expected the parts of a trainer's state in {name}, got another set: {odd}"
        raise CheckpointError(message)
    lines = list(_lines(training, state, loader))
    if lines:
        listed = "\n\t".join(lines)
        message = f"load: expected a trainer like that of {name}, got another:\n\t{listed}"
        raise CheckpointError(message)
    return state


def _lines(training: TrainerStep, state: State, loader: Stateful | None) -> Iterator[str]:
    """Say what differs between a trainer and a state."""
    different = list(differences(training, state["configuration"]))
    yield from different
    if (loader is None) != (state["loader"] is None):
        there, here = ("none", "one") if loader is not None else ("one", "none")
        yield f"loader: {there} in the file, {here} here"
    unlike = list(faults(training.replicas[0].state_dict(), state["model"]))
    yield from unlike
    if different or unlike:
        return
    yield from misplaced(training, state["parameters"])
    for index, saved in enumerate(state["buffers"]):
        yield from (f"replica {index}: {line}" for line in faults(apart(training, index), saved))
    parameters = list(training.replicas[0].parameters())
    sums = dict(enumerate(state["accumulator"]["sums"]))
    for index, parameter in enumerate(parameters):
        held = sums.get(index)
        if index not in sums or (held is not None and held.shape != parameter.shape):
            yield f"accumulator: other gradients than those of parameter {index}"
    yield from _random_faults(training, state["random"])


def _random_faults(training: TrainerStep, saved: Mapping[str, Any]) -> Iterator[str]:
    """Say whether random states can be others than torch's."""
    expected = torch.get_rng_state()
    for index in range(len(training.replicas)):
        held = saved["cpu"][index] if index < len(saved["cpu"]) else None
        if held is None or held.shape != expected.shape or held.dtype != expected.dtype:
            yield f"random: no state of {len(expected)} bytes for replica {index}"
