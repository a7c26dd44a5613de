"""C# exceptions as Python exceptions."""

import pickle
from dataclasses import asdict

import pytest

from bridge.dotnet import DotnetError, Failure
from bridge.dotnet.errors import from_reply

FAILURE = Failure(1, "cpu", "System.ArithmeticException", "too small", "   at Model.forward()")


@pytest.mark.parametrize(
    ("kinds", "kind"),
    [
        (["System.ArgumentException", "System.Exception"], ValueError),
        (["System.ArgumentNullException", "System.ArgumentException"], ValueError),
        (["System.Collections.Generic.KeyNotFoundException"], KeyError),
        (["System.IO.FileNotFoundException", "System.IO.IOException"], FileNotFoundError),
        (["System.InvalidOperationException", "System.Exception"], RuntimeError),
        ([], RuntimeError),
    ],
)
def test_exception_is_also_its_python_counterpart(kinds: list[str], kind: type) -> None:
    """A C# exception can be caught as what it would be in Python, and always as DotnetError.

    Spec: R16.3.
    """
    error = from_reply({"kinds": kinds, "message": "step: expected 2, got 3", "stack": "  at X"})
    assert isinstance(error, kind)
    assert isinstance(error, DotnetError)
    assert str(error).startswith("step: expected 2, got 3\n")


def test_text_has_the_message_first_then_replicas_and_stack() -> None:
    """The text names replica and device, with both stacks. Spec: R16.3."""
    error = from_reply(
        {
            "type": "A.B",
            "message": "it failed",
            "stack": "   at Outer()",
            "failures": [asdict(FAILURE)],
        }
    )
    assert error.failures == [FAILURE]
    assert str(error).splitlines() == [
        "it failed",
        "in replica 1 on device cpu: System.ArithmeticException: too small",
        "   at Model.forward()",
        "C# stack (A.B):",
        "   at Outer()",
    ]


def test_error_survives_pickling() -> None:
    """An error keeps its parts on the way through another process. Spec: R16.3."""
    error = from_reply({"type": "A.B", "message": "m", "stack": "s", "failures": [asdict(FAILURE)]})
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - its own bytes
    assert (str(copy), copy.failures) == (str(error), error.failures)
