"""Schedulers by name, with the same options in both languages."""

import inspect
from collections import Counter
from collections.abc import Mapping
from typing import Any

from torch.optim import Optimizer, lr_scheduler

from bridge.optim import reference

SCHEDULERS: dict[str, Any] = {
    name: getattr(lr_scheduler, name)
    for name in (
        "LambdaLR",
        "MultiplicativeLR",
        "StepLR",
        "MultiStepLR",
        "ConstantLR",
        "LinearLR",
        "ExponentialLR",
        "SequentialLR",
        "CosineAnnealingLR",
        "ChainedScheduler",
        "ReduceLROnPlateau",
        "CyclicLR",
        "CosineAnnealingWarmRestarts",
        "OneCycleLR",
        "PolynomialLR",
    )
}
State = dict[str, Any]


def create(name: str, optimizer: Optimizer, **options: Any) -> Any:  # noqa: ANN401 - the scheduler checks its options
    """Make a scheduler by its name, with PyTorch's defaults.

    Args:
        name: that of PyTorch's class, such as ``"StepLR"``.
        optimizer: whose learning rates it moves.
        options: as PyTorch names them. ``schedulers`` may be described instead of made: each by a
            dictionary of its ``name`` and its options.

    Raises:
        ValueError: another name, an option that the scheduler does not have, lacks, or that is out
            of range.

    Spec: R27.4
    """
    if name not in SCHEDULERS:
        message = f"scheduler: expected one of {', '.join(SCHEDULERS)}, got {name!r}"
        raise ValueError(message)
    parameters = inspect.signature(SCHEDULERS[name]).parameters
    _check(name, parameters, options)
    if "schedulers" in options:
        options["schedulers"] = [_described(item, optimizer) for item in options["schedulers"]]
    if "optimizer" in parameters:
        options["optimizer"] = optimizer
    return SCHEDULERS[name](**options)


def state_dict(scheduler: Any) -> State:  # noqa: ANN401 - any of PyTorch's
    """Return the state under PyTorch's names, as a tree that JSON can hold.

    Counters and tuples become dicts with strings as keys, and lists; functions are None, or left
    out where PyTorch 1.13 has them under a name.

    Args:
        scheduler: one of PyTorch's.

    Returns:
        A fresh tree of dicts with keys of strings, lists, numbers, strings, booleans and None.

    Raises:
        TypeError: the state of a callable object that such a tree cannot hold.

    Spec: R27.3
    """
    tree: State = _plain(scheduler.state_dict())
    return tree


def load_state_dict(scheduler: Any, state: Mapping[str, Any]) -> None:  # noqa: ANN401
    """Take a state, written in either language; what it does not name stays as it is.

    Args:
        scheduler: one of PyTorch's.
        state: a tree such as :func:`state_dict` returns.

    Raises:
        ValueError: another number of schedulers than a combined one has.

    Spec: R27.3
    """
    scheduler.load_state_dict(_restored(scheduler, state))


def _check(name: str, parameters: Mapping[str, inspect.Parameter], options: State) -> None:
    """Refuse options that a scheduler does not have, or lacks."""
    known = {key: p.default for key, p in parameters.items() if key not in ("optimizer", "verbose")}
    for option in options:
        if option not in known:
            expected = f"options of {name} ({', '.join(known)})"
            message = f"scheduler: expected {expected}, got {option!r}"
            raise ValueError(message)
    for option, default in known.items():
        if default is inspect.Parameter.empty and option not in options:
            message = f"scheduler: expected option {option} of {name}, got {list(options)}"
            raise ValueError(message)


def _described(item: Any, optimizer: Optimizer) -> Any:  # noqa: ANN401
    """Take a scheduler, or make one that is described by its name and options."""
    if not isinstance(item, Mapping):
        return item
    if "name" not in item:
        message = f"scheduler: expected the name of a scheduler, got {list(item)}"
        raise ValueError(message)
    return create(optimizer=optimizer, **item)


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Copy a state as a tree that JSON can hold, without methods and functions."""
    if isinstance(value, Mapping):
        kept = {str(key): part for key, part in value.items() if not callable(part)}
        return {key: _plain(part) for key, part in kept.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    message = f"state_dict: expected numbers, strings, lists and dicts, got {type(value).__name__}"
    raise TypeError(message)


def _restored(scheduler: Any, state: Mapping[str, Any]) -> State:  # noqa: ANN401
    """Copy a state with the types that a scheduler of PyTorch needs."""
    taken: State = _plain(state)
    if "milestones" in taken:
        taken["milestones"] = Counter({int(key): n for key, n in taken["milestones"].items()})
    if isinstance(scheduler, lr_scheduler.CyclicLR):
        # PyTorch 1.13 has the function itself here; later ones need the name.
        given = taken.pop("_scale_fn_custom", None)
        taken |= {"_scale_fn_custom": given} if reference() != "1.13" else {}
    if "_schedulers" in taken:
        parts = scheduler._schedulers  # noqa: SLF001
        if len(parts) != len(taken["_schedulers"]):
            name, count = type(scheduler).__name__, len(taken["_schedulers"])
            expected = f"expected {len(parts)} states, got {count}"
            message = f"load_state_dict: _schedulers of {name}: {expected}"
            raise ValueError(message)
        pairs = zip(parts, taken["_schedulers"], strict=True)
        taken["_schedulers"] = [_restored(part, own) for part, own in pairs]
    return taken
