"""Frames over pipes."""

import io

import pytest

from bridge.dotnet import channel
from bridge.dotnet.channel import Channel, encode


class Trickle(io.BytesIO):
    """A stream that takes and gives at most 3 bytes at a time, as a pipe may."""

    def read(self, size: int | None = -1) -> bytes:
        """Give up to 3 bytes."""
        return super().read(min(3, 3 if size is None else size))

    def write(self, data: bytes | memoryview) -> int:  # type: ignore[override]
        """Take up to 3 bytes."""
        return super().write(data[:3])


def received(data: bytes) -> object:
    """Receive what a stream of these bytes holds."""
    return Channel(Trickle(data), io.BytesIO()).receive()


def test_message_survives_a_stream_in_pieces() -> None:
    """A message that is written and read in pieces arrives whole."""
    stream, message = Trickle(), {"text": "Grüße, 世界", "numbers": [1, -0.5, None]}
    Channel(io.BytesIO(), stream).send(encode(message))
    assert received(stream.getvalue()) == message


@pytest.mark.parametrize("length", [0, 2, 4, 9])
def test_stream_that_ends_is_no_message(length: int) -> None:
    """A stream that ends before or inside a frame gives None."""
    assert received(encode({"key": "value"})[:length]) is None


def test_bytes_that_are_no_frame_are_refused() -> None:
    """Text where a frame should be is refused instead of waited for."""
    with pytest.raises(ValueError, match=r"receive: expected a frame of at most \d+ bytes, got"):
        received(b"Hello, I am no frame.")


def test_long_message_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message over the limit is refused before anything is sent."""
    monkeypatch.setattr(channel, "LIMIT", 10)
    with pytest.raises(ValueError, match="encode: expected a message of at most 10 bytes, got 20"):
        encode({"key": "value...."})
