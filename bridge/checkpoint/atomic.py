"""Files that are replaced as a whole."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows removes no file that is open
    fcntl = None  # type: ignore[assignment]

WINDOWS = os.name == "nt"


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a file beside ``path``, bring it to the disk, then put it in its place.

    Whatever happens before the end, a kill included, leaves the old file whole. What killed
    processes left beside it is removed. A link stays, and its target is replaced.

    Args:
        path: the file.

    Raises:
        OSError: it cannot be written; the old file is whole.

    Spec: R26.7, R26.8
    """
    target = Path(path).resolve()
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        _remove_stale(target)
        with temporary.open("xb") as file:
            _lock(file)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if not WINDOWS:
                # Under its lock, so that no other process takes it for stale.
                temporary.replace(target)
        if WINDOWS:
            temporary.replace(target)
        _to_disk(target.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise _unwritten(target, error) from error
        raise


def _unwritten(target: Path, error: OSError) -> OSError:
    """Say which file is as it was, with the number that the system gave."""
    message = f"expected to write {target}, which is as it was, got {error.strerror or error}"
    return type(error)(error.errno, message) if error.errno else OSError(message)


def _remove_stale(target: Path) -> None:
    """Remove what killed processes left, and nothing that another process is writing."""
    for path in target.parent.glob(f".{_literal(target.name)}.{'[0-9a-f]' * 16}.tmp"):
        with suppress(OSError):
            if fcntl is None:
                path.unlink()
                continue
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()


def _literal(name: str) -> str:
    """Write a name for ``glob``."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def _lock(file: IO[bytes]) -> None:
    """Show other processes that a file is being written; not every file system can."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _to_disk(folder: Path) -> None:
    """Bring the new name to the disk, where the system can."""
    if WINDOWS:
        return
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
