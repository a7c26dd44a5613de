"""What the user's code throws on one side, or on both."""

from collections.abc import Callable
from traceback import extract_tb
from typing import Any

from bridge.check.config import ConfigError
from bridge.check.result import Finding, Result
from bridge.dotnet import DotnetError, WorkerDied

Errors = tuple[Exception | None, Exception | None]


def both(one: Callable[[], Any], two: Callable[[], Any]) -> tuple[tuple[Any, Any] | None, Errors]:
    """Do the same on both sides, whatever one of them throws.

    Returns:
        The results, None where there are not two, and the exceptions.

    Raises:
        ConfigError: the configuration is wrong, not the user's code.
        WorkerDied: C# is gone, which says nothing of the port.
    """
    results: list[Any] = []
    errors: list[Exception | None] = []
    for side in (one, two):
        try:
            results.append(side())
            errors.append(None)
        except (ConfigError, WorkerDied):  # noqa: PERF203 - each side has its own
            raise
        except Exception as error:  # noqa: BLE001 - an exception of the user's code is a finding
            errors.append(error)
    return (tuple(results) if len(results) == 2 else None), (errors[0], errors[1])  # type: ignore[return-value]  # noqa: PLR2004


def result(place: str, errors: Errors, findings: list[Finding] | None = None) -> Result:
    """Make a result of exceptions; on one side only they are a divergence.

    Spec: R34.3
    """
    texts = [f"the {side}'s {place}: {line(error)}" for side, error in sided(errors)]
    verdict = "diverged" if len(texts) == 1 else "incomparable"
    reason = f"Exception in {'; '.join(texts)}"
    return Result(verdict, reason, findings or [], {}, details=details(errors))  # type: ignore[arg-type]


def sided(errors: Errors) -> list[tuple[str, Exception]]:
    """List the exceptions with their sides."""
    pairs = zip(("reference", "port"), errors, strict=True)
    return [(side, error) for side, error in pairs if error is not None]


def line(error: Exception) -> str:
    """Write the type of an exception and the first line of its message."""
    kind, text = type(error).__name__, str(error)
    if isinstance(error, DotnetError):
        own = [(failure.type, failure.message) for failure in error.failures]
        thrown, text = own[0] if own else (error.type, error.message)
        kind = thrown.rpartition(".")[2] or kind
    return f"{kind}: {text.strip().splitlines()[0]}" if text.strip() else kind


def details(errors: Errors) -> list[str]:
    """Write all that exceptions say of their places, where it is more than a line."""
    texts = [f"The {side}'s exception: {_whole(error)}" for side, error in sided(errors)]
    return [text for text in texts if "\n" in text]


def _whole(error: Exception) -> str:
    """Write an exception with the places in the user's code that it went through."""
    if isinstance(error, DotnetError):
        return str(error)
    frames = [
        f"   at {frame.name} in {frame.filename}:line {frame.lineno}"
        for frame in reversed(extract_tb(error.__traceback__))
    ]
    return "\n".join([f"{type(error).__name__}: {error}", *frames])
