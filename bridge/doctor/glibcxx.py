"""Which version of libstdc++ a library needs, and which the system has."""

import ctypes
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_VERSION = re.compile(rb"GLIBCXX_(\d+(?:\.\d+)+)\0")
_LIBRARY = "libstdc++.so.6"


def newest(path: Path) -> str | None:
    """Find the newest version of libstdc++ that a library names: it needs it, or it has it.

    Spec: R32.3
    """
    found = [match.decode() for match in _VERSION.findall(path.read_bytes())]
    return max(found, key=_key) if found else None


def older(version: str, other: str) -> bool:
    """Tell whether a version is older than another.

    Spec: R32.3
    """
    return _key(version) < _key(other)


def library() -> Path | None:
    """Find the libstdc++ of this process; Linux alone has one of that name."""
    if sys.platform != "linux":
        return None
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
    return next((path for path in _mapped() if path.name.startswith("libstdc++.so")), None)


def _mapped() -> Iterator[Path]:
    """List the files that this process has mapped."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        if "/" in line:
            yield Path(line[line.index("/") :])


def _key(version: str) -> tuple[int, ...]:
    """Turn a version into numbers."""
    return tuple(map(int, version.split(".")))
