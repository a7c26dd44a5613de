"""JSON, read alike in both languages."""

import json
from typing import Any


class Invalid:
    """What is no JSON."""


def parse_json(text: str) -> Any:  # noqa: ANN401 - any JSON
    """Parse JSON; objects become tuples of pairs, which show names that are there twice.

    Args:
        text: what may be JSON.

    Returns:
        Lists, tuples of pairs, numbers, texts, booleans and None, or the type ``Invalid``.
    """
    try:
        parsed = json.loads(text, object_pairs_hook=tuple, parse_constant=_no_constant)
        # An escaped half of a pair of surrogates is no text.
        json.dumps(parsed, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return Invalid
    return parsed


def _no_constant(name: str) -> None:
    """Refuse NaN and infinity, which Python reads and JSON does not have."""
    raise ValueError(name)
