"""The batches of a check: the user's own, from an ``.npz``, or drawn from a seed."""

import itertools
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bridge.check.config import Config, ConfigError

Batch = tuple[torch.Tensor, torch.Tensor]
_KEYS = {"shape", "target_shape", "classes", "vocabulary", "batch", "seed"}


def named(config: Config, path: str) -> Any:  # noqa: ANN401 - whatever has the name
    """Import ``package.module:name``, found from the folder of the configuration.

    Raises:
        ConfigError: there is no such module, or nothing of that name in it.
    """
    folder = str(config.folder)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ModuleNotFoundError, AttributeError) as error:
        raise ConfigError(key=path, expected="a module and a name in it", got=str(error)) from error


def batches(config: Config) -> list[Batch]:
    """Return a batch for each step; floating-point inputs and targets have the run's dtype.

    A finite source is gone through again where it ends before the steps do.

    Raises:
        ConfigError: there is no batch, or the description has another key.

    Spec: R34.1
    """
    dtype = getattr(torch, config.dtype)
    found = list(itertools.islice(_source(config), config.steps))
    if not found:
        raise ConfigError(key="data", expected="at least one batch", got="none")
    pairs = [(_tensor(x, dtype), _tensor(y, dtype)) for x, y in found]
    return list(itertools.islice(itertools.cycle(pairs), config.steps))


def _source(config: Config) -> Iterable[Any]:
    """Find where the batches come from."""
    if isinstance(config.data, Mapping):
        return _drawn(config.data, config)
    if config.data.endswith(".npz"):
        return _stored(config.folder / config.data)
    source = named(config, config.data)
    made: Iterable[Any] = source() if callable(source) else source
    return made


def _stored(path: Path) -> list[Any]:
    """Read ``inputs`` and ``targets``, whose first dimension counts the batches."""
    if not path.is_file():
        raise ConfigError(key="data", expected="a file", got=str(path))
    with np.load(path) as stored:
        for key in ("inputs", "targets"):
            if key not in stored:
                raise ConfigError(
                    key="data", expected=f"an array {key} in {path.name}", got=sorted(stored)
                )
        return list(zip(stored["inputs"], stored["targets"], strict=True))


def _drawn(about: Mapping[str, Any], config: Config) -> Iterable[Batch]:
    """Draw batches: normal inputs or tokens, and labels or normal targets."""
    for key in about:
        if key not in _KEYS:
            raise ConfigError(
                key=f"data.{key}", expected=f"one of {', '.join(sorted(_KEYS))}", got=key
            )
    if not isinstance(about.get("shape"), list):
        raise ConfigError(
            key="data.shape", expected="a list, the shape of one sample", got=about.get("shape")
        )
    if "classes" not in about and "target_shape" not in about:
        raise ConfigError(
            key="data.classes", expected="the number of classes, or target_shape", got=None
        )
    generator = torch.Generator().manual_seed(about.get("seed", config.seed))
    count = about.get("batch", 8)
    for _ in range(config.steps):
        shape, goal = (count, *about["shape"]), (count, *about.get("target_shape", ()))
        yield (
            torch.randint(about["vocabulary"], shape, generator=generator)
            if "vocabulary" in about
            else torch.randn(shape, generator=generator),
            torch.randint(about["classes"], goal, generator=generator)
            if "classes" in about
            else torch.randn(goal, generator=generator),
        )


def _tensor(value: Any, dtype: torch.dtype) -> torch.Tensor:  # noqa: ANN401 - an array or a tensor
    """Make a tensor of it."""
    tensor = torch.as_tensor(value)
    return tensor.to(dtype) if tensor.is_floating_point() else tensor
