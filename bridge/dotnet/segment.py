"""Memory that the caller and its worker share: one block that grows and never has a name on disk.

Linux shares an anonymous memory file, which a small ``/dev/shm`` does not limit; other POSIX
systems share an unlinked temporary file; Windows shares a named mapping, which vanishes with the
last process that has it open. Nothing is left behind, whichever side is killed.
"""

import ctypes
import mmap
import os
import sys
import tempfile
import uuid

_STEP = 1 << 20


class Segment:
    """The caller's side: it makes the block and lets it grow."""

    def __init__(self) -> None:
        """Start with an empty block."""
        self.size = 0
        self.name = ""
        self._map: mmap.mmap | None = None
        self._file = None if sys.platform == "win32" else _anonymous_file()

    @property
    def inherited(self) -> tuple[int, ...]:
        """The file descriptors that the worker must inherit."""
        return () if self._file is None else (self._file,)

    def grow(self, size: int) -> memoryview:
        """Make the block at least ``size`` bytes long; growing may lose what is in it.

        Returns:
            The block. An earlier view stays readable, but is no longer shared on Windows.
        """
        if self._map is None or size > self.size:
            self.size = -(-max(size, 1) // _STEP) * _STEP
            if self._file is None:
                self.name = f"bridge-{uuid.uuid4().hex}"
            else:
                self.name = str(self._file)
                os.truncate(self._file, self.size)
            self._map = _map(self.name, self.size)
        return memoryview(self._map)

    def close(self) -> None:
        """Let go of the block; it vanishes with the last view of it."""
        self._map = None
        if self._file is not None:
            os.close(self._file)
            self._file = None


class View:
    """The worker's side: it maps the block anew whenever it has grown."""

    def __init__(self) -> None:
        """Start without a mapping."""
        self._key = ("", 0)
        self._map: mmap.mmap | None = None
        self._address = 0

    def address(self, name: str, size: int) -> int:
        """Return where the block lies in this process, 0 while it is empty."""
        if size and (name, size) != self._key:
            self._map = _map(name, size)
            self._key = (name, size)
            self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        return self._address


def _map(name: str, size: int) -> mmap.mmap:
    """Map the block: a name on Windows, a file descriptor elsewhere."""
    if sys.platform == "win32":
        return mmap.mmap(-1, size, tagname=name)
    return mmap.mmap(int(name), size)


def _anonymous_file() -> int:
    """Open a file without a name."""
    if sys.platform == "linux":
        return os.memfd_create("bridge")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
