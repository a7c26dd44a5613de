"""Checks ports in pytest: the fixture ``parity``, and ``assert_parity``."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from bridge.check.result import Result


def assert_parity(
    source: str | Path | Mapping[str, Any],
    folder: str | Path | None = None,
    *,
    strict: bool = False,
    **options: Any,  # noqa: ANN401 - those of check
) -> "Result":
    """Check a port; the message of a failure is the report.

    Args:
        source: path of a ``port.toml``, or a mapping of its form.
        folder: what paths in a mapping are relative to.
        strict: fail for equivalent too.
        options: of ``bridge.parity.check``.

    Raises:
        AssertionError: it is neither identical nor equivalent.

    Spec: R34.5
    """
    from bridge.check import check, text  # noqa: PLC0415 - pytest loads this file at every start

    result = check(source, folder, **options)
    if result.exit_code(strict=strict):
        raise AssertionError("\n" + text.render(result))
    return result


@pytest.fixture
def parity() -> "Callable[..., Result]":
    """Return :func:`assert_parity`."""
    return assert_parity
