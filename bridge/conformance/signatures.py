"""Which arguments and defaults of PyTorch TorchSharp has."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from bridge.conformance.measure import Aspect
from bridge.conformance.values import find

Names = Mapping[str, Sequence[str]]
Overloads = Sequence[Sequence[Mapping[str, Any]]]

_OPEN = ("args", "kwargs", "self", "params", "optimizer", "input", "tensor")


def parameters(name: str) -> dict[str, Any] | None:
    """List PyTorch's parameters and their defaults, ``inspect.Parameter.empty`` for none.

    Returns:
        None where it tells of none, as most functions in C++ do.
    """
    try:
        signature = inspect.signature(find(name))
    except (ValueError, TypeError):
        return None
    return {
        parameter.name: parameter.default
        for parameter in signature.parameters.values()
        if parameter.name not in _OPEN
    }


def compare(
    python: Mapping[str, Any], csharp: Overloads, names: Names, ignored: Sequence[str]
) -> list[Aspect]:
    """Compare PyTorch's parameters with those of TorchSharp's overloads.

    Args:
        python: names and defaults.
        csharp: of each overload its parameters: ``name``, ``optional``, ``default``.
        names: what TorchSharp may call a parameter; ``a+b`` are two for a pair.
        ignored: parameters that do not count.

    A default of None, or of null, states nothing, and does not differ from another.

    Spec: R31.4
    """
    aspects = []
    for name, default in python.items():
        if name in ignored:
            continue
        found = [
            match
            for overload in csharp
            for alias in (name, *names.get(name, ()))
            if (match := _find(alias, overload)) is not None
        ]
        if not found:
            aspects.append(Aspect(name, "missing", None, _say(default), "no such argument"))
        elif default is not inspect.Parameter.empty and default is not None:
            without = any(not _has(name, names, overload) for overload in csharp)
            aspects += _defaults(name, default, found, without)
    return aspects


def _find(alias: str, overload: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]] | None:
    """Find the parameters that an alias names in one overload; all of them, or none."""
    own = {_plain(parameter["name"]): parameter for parameter in overload}
    parts = [own.get(_plain(part)) for part in alias.split("+")]
    found = [part for part in parts if part is not None]
    return found if len(found) == len(parts) else None


def _has(name: str, names: Names, overload: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether an overload has a parameter."""
    return any(_find(alias, overload) is not None for alias in (name, *names.get(name, ())))


def _defaults(
    name: str,
    default: object,
    found: list[list[Mapping[str, Any]]],
    without: bool,  # noqa: FBT001 - whether an overload has no such parameter
) -> list[Aspect]:
    """Compare a default; null, and an overload without it, leave it to the library."""
    default = getattr(default, "__name__", default)
    wanted = list(default) if isinstance(default, tuple) else [default]
    stated = []
    for parts in found:
        values = [part["default"] if part["optional"] else _REQUIRED for part in parts]
        if values == [None] or _equal(wanted, values):
            return []
        stated.append(values if len(values) > 1 else values[0])
    if without and all(value == _REQUIRED for value in stated):
        return []
    return [Aspect(name, "differs", None, _say(default), _say(stated[0]))]


_REQUIRED = "no default"


def _equal(python: list[Any], csharp: list[Any]) -> bool:
    """Compare defaults: numbers as such, names but for case and underscores."""
    if len(python) != len(csharp):
        return False
    return all(
        _plain(one) == _plain(other) if isinstance(one, str) else _same(one, other)
        for one, other in zip(python, csharp, strict=True)
    )


def _same(one: object, other: object) -> bool:
    """Compare two plain values; C# has float32 defaults too, which are a little off."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= 1e-6 * abs(one)
    return one is other


def _plain(name: object) -> str:
    """Leave case and underscores out of a name."""
    return str(name).replace("_", "").lower()


def _say(value: object) -> str:
    """Write a default."""
    if value is inspect.Parameter.empty:
        return "required"
    if isinstance(value, float):
        return f"{value:.10g}"
    return str(value)
