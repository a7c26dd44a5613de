"""The zip files that ``torch.save`` writes, read without trust."""

import struct
import zipfile
from typing import IO, NoReturn

from bridge.checkpoint.checkpoint_error import CheckpointError

ZIP = b"PK\x03\x04"
LEGACY = b"\x80\x02\x8a\x0a"
"""What files of ``torch.save`` before PyTorch 1.6 start with."""

ENCRYPTED = 0x1
PART = 1 << 24
DAMAGED = (
    zipfile.BadZipFile,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
    struct.error,
)
"""What zipfile raises for damaged files."""


class Archive:
    """The records of a file of ``torch.save``, by their names below its one folder.

    Nothing is unpacked: records are stored as they are, so they cannot hold more than the file.

    Spec: R26.10. Source: caffe2/serialize/inline_container.h
    """

    def __init__(self, file: IO[bytes], name: str) -> None:
        """Read the directory of an open file."""
        self.name = name
        start = file.read(4)
        if start != ZIP:
            got = "the legacy format" if start == LEGACY else "other bytes"
            self.refuse("a zip file, as torch.save writes since PyTorch 1.6", got)
        try:
            self._zip = zipfile.ZipFile(file)
        except DAMAGED:
            self.refuse("a whole zip file", "a damaged one")
        self._records = self._checked(self._zip.infolist(), file.seek(0, 2))
        if "constants.pkl" in self._records:
            self.refuse("a file of torch.save", "a TorchScript archive")
        if "byteorder" in self._records and self.read("byteorder") != b"little":
            self.refuse("little-endian bytes", "others")

    def read(self, record: str) -> bytearray:
        """Read a record."""
        content = bytearray(self.size(record))
        self.read_into(record, memoryview(content))
        return content

    def read_into(self, record: str, place: memoryview) -> None:
        """Read a record into memory of its size, and check its CRC."""
        try:
            with self._zip.open(self._records[record]) as file:
                whole = all(_fill(file, place[i : i + PART]) for i in range(0, len(place), PART))
                rest = file.read(1)
        except DAMAGED:
            self.refuse(f"a whole record {record}", "a damaged one")
        if not whole or rest:
            self.refuse(f"a whole record {record}", "a damaged one")

    def size(self, record: str) -> int:
        """Return the number of bytes of a record."""
        if record not in self._records:
            self.refuse(f"a record {record}", "none")
        return self._records[record].file_size

    def refuse(self, expected: str, got: str) -> NoReturn:
        """Say what the file should have had."""
        message = f"load: expected {expected} in {self.name}, got {got}"
        raise CheckpointError(message)

    def _checked(self, entries: list[zipfile.ZipInfo], length: int) -> dict[str, zipfile.ZipInfo]:
        """List the records by name, where the directory is as PyTorch writes it."""
        records: dict[str, zipfile.ZipInfo] = {}
        root = entries[0].orig_filename.partition("/")[0] if entries else ""
        for entry in entries:
            folder, _, record = entry.orig_filename.partition("/")
            parts = {folder, *record.split("/")}
            strange = parts & {"", ".", ".."} or "\\" in entry.orig_filename
            if folder != root or strange:
                self.refuse("records in one folder", f"'{entry.orig_filename}'")
            if record in records:
                self.refuse("every record once", f"{record} twice")
            if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & ENCRYPTED:
                self.refuse("records as they are", f"{record} compressed or encrypted")
            records[record] = entry
        total = sum(entry.file_size for entry in entries)
        if total > length:
            self.refuse(f"records of at most {length} bytes", f"{total}")
        return records


def _fill(file: IO[bytes], place: memoryview) -> bool:
    """Read a part of a record; its bytes are in memory twice while it is copied."""
    content = file.read(len(place))
    place[: len(content)] = content
    return len(content) == len(place)
