"""Calls a module with the arguments of its shard."""

import inspect
from collections.abc import Mapping
from typing import Any

from torch import nn


def call(module: nn.Module, shard: Any, kwargs: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - any tree
    """Call a module, hooks included; a tuple is spread over arguments, a dict by their names.

    Args:
        module: the module.
        shard: its argument, or a tuple of its positional arguments, or a dict of its keyword
            arguments. A module with one parameter, or without one that a key names, gets the dict
            as it is.
        kwargs: more arguments by their names.

    Returns:
        The output.

    Spec: R3.1, R3.5
    """
    named = kwargs or {}
    if isinstance(shard, tuple):
        return module(*shard, **named)
    if isinstance(shard, Mapping) and _are_keywords(module, shard):
        return module(**shard, **named)
    return module(shard, **named)


def _are_keywords(module: nn.Module, shard: Mapping[Any, Any]) -> bool:
    """Tell whether a key names one of several parameters."""
    parameters = inspect.signature(module.forward).parameters
    return len(parameters) > 1 and not parameters.keys().isdisjoint(shard)
