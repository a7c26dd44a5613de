"""The doctor: looks at everything that both sides need, and says how to mend what is missing."""

import importlib.util
from collections.abc import Iterator

from bridge.doctor import csharp_side, python_side
from bridge.doctor.finding import Finding


def examine(threads: int = 1) -> Iterator[Finding]:
    """Look at both sides, from the plain to what needs all of it.

    It goes as far as it can: without torch, without .NET and without a build it says so.

    Args:
        threads: of the battery, on both sides.

    Spec: R32.1, R32.2
    """
    found = list(python_side.findings(threads))
    yield from found
    yield from csharp_side.outside()
    host, finding = csharp_side.connect()
    yield finding
    if host is None:
        yield Finding("build family", "note", "not known: C# does not start")
        return
    with host:
        yield from csharp_side.inside(host)
        if _works("torch", found):
            from bridge.doctor import battery  # noqa: PLC0415 - it needs torch

            yield from battery.findings(battery.measure(host, threads))
            yield Finding("fingerprint", "ok", battery.fingerprint())
        else:
            yield Finding("build family", "note", "not known: Python has no torch")


def _works(name: str, found: list[Finding]) -> bool:
    """Tell whether a package was found, and works."""
    there = importlib.util.find_spec(name) is not None
    return there and any(finding.name == name and finding.state == "ok" for finding in found)
