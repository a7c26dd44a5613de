"""Messages between the caller and the worker: JSON in frames, over two pipes."""

import json
import struct
from collections.abc import Mapping
from typing import IO, Any

LIMIT = 1 << 26
_HEAD = struct.Struct("<I")


def encode(message: Mapping[str, Any]) -> bytes:
    """Make a frame of a message: its length in 4 bytes, little-endian, and JSON in UTF-8.

    Raises:
        TypeError: something that JSON cannot hold.
        ValueError: a message of more than 64 MB, or a number that is not finite.
    """
    payload = json.dumps(message, allow_nan=False).encode()
    if len(payload) > LIMIT:
        text = f"encode: expected a message of at most {LIMIT} bytes, got {len(payload)}"
        raise ValueError(text)
    return _HEAD.pack(len(payload)) + payload


class Channel:
    """Sends and receives frames.

    Args:
        reader: an unbuffered binary stream to read from.
        writer: an unbuffered binary stream to write to.
    """

    def __init__(self, reader: IO[bytes], writer: IO[bytes]) -> None:
        """Keep the two streams; whoever opened them closes them."""
        self._reader = reader
        self._writer = writer

    def send(self, frame: bytes) -> None:
        """Send one frame.

        Raises:
            OSError: the other side has gone.
        """
        rest = memoryview(frame)
        while rest:
            rest = rest[self._writer.write(rest) :]

    def receive(self) -> dict[str, Any] | None:
        """Wait for the next message.

        Returns:
            The message, or None where the other side has gone.

        Raises:
            ValueError: bytes that are no frame.
        """
        head = self._read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        (length,) = _HEAD.unpack(head)
        if length > LIMIT:
            text = f"receive: expected a frame of at most {LIMIT} bytes, got {length}"
            raise ValueError(text)
        payload = self._read(length)
        if len(payload) < length:
            return None
        message: dict[str, Any] = json.loads(payload)
        return message

    def _read(self, count: int) -> bytes:
        """Read ``count`` bytes, fewer only at the end of the stream."""
        data = bytearray()
        while len(data) < count and (part := self._reader.read(count - len(data))):
            data += part
        return bytes(data)
