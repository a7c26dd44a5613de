"""What a training run must agree on with the one that it goes on with."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from bridge.parallel.linear_scaling import LinearScaling
from bridge.parallel.trainer_step import TrainerStep


def configuration(training: TrainerStep) -> dict[str, str]:
    """Describe a trainer by texts, the same in both languages."""
    options = training.options
    kinds = [type(own).__name__ for own in training.schedulers[:1]]
    return {
        "model": type(training.replicas[0]).__name__,
        "optimizer": type(training.optimizers[0]).__name__,
        "scheduler": kinds[0] if kinds else "None",
        "reduction": options.reduction,
        "mode": options.mode,
        "buffers": options.buffers,
        "accumulate": str(int(options.accumulate)),
        "clip_norm": _number(options.clip_norm),
        "clip_value": _number(options.clip_value),
        "scaling": _scaling(options.scaling),
        "replicas": str(len(training.replicas)),
    }


def differences(training: TrainerStep, saved: Mapping[str, str]) -> Iterator[str]:
    """Say what differs from a description; the name of the model's class may."""
    for name, here in configuration(training).items():
        if name != "model" and saved.get(name) != here:
            yield f"{name}: {saved.get(name, 'nothing')} in the file, {here} here"


def placed(training: TrainerStep) -> list[str]:
    """List the parameters of the optimizer by name and group, in its order."""
    names = {id(value): name for name, value in training.replicas[0].named_parameters()}
    return [
        f"{names.get(id(parameter), 'a stranger')} in group {index}"
        for index, group in enumerate(training.optimizers[0].param_groups)
        for parameter in group["params"]
    ]


def misplaced(training: TrainerStep, saved: Sequence[str]) -> Iterator[str]:
    """Say which is the first parameter of the optimizer that has another place."""
    pairs = zip_longest(saved, placed(training), fillvalue="nothing")
    for index, (there, here) in enumerate(pairs):
        if there != here:
            yield f"parameter {index} of the optimizer: {there} in the file, {here} here"
            return


def _number(value: float | None) -> str:
    """Write a number, or None."""
    return str(None if value is None else float(value))


def _scaling(scaling: LinearScaling | None) -> str:
    """Write a rule of scaling, or None."""
    if scaling is None:
        return "None"
    return f"factor {float(scaling.factor)}, warm_up {scaling.warm_up}"
