"""Proof that two trainers are one: digests, the build-family battery, comparison, the report."""

from typing import Any


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute can be anything
    """Import the check on first use; it needs this package."""
    if name == "check":
        from bridge.check import check  # noqa: PLC0415

        return check
    message = f"module 'bridge.parity' has no attribute {name!r}"
    raise AttributeError(message)
