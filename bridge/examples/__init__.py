"""Whole systems on the verbs, twins of those in BridgeSharp.Models: one file each."""

from importlib import import_module

from bridge.examples.example import Example, Result, Setting

NAMES = ("manual_loop", "from_scratch", "data_parallel", "variable_length")


def find(name: str) -> Example:
    """Find an example by its name.

    Args:
        name: one of :data:`NAMES`.

    Returns:
        The function that runs it.

    Raises:
        ValueError: another name.

    Spec: R23.1
    """
    if name not in NAMES:
        message = f"example: expected one of {', '.join(NAMES)}, got {name}"
        raise ValueError(message)
    run: Example = import_module(f"bridge.examples.{name}").run
    return run


__all__ = ["NAMES", "Example", "Result", "Setting", "find"]
