"""Files of TorchSharp's own ``Module.save``."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, NoReturn
from unicodedata import category

import torch

from bridge.checkpoint.atomic import replacing
from bridge.checkpoint.checkpoint_error import CheckpointError
from bridge.checkpoint.entry import itemsize, sound
from bridge.checkpoint.layout import check
from bridge.parity.digest import raw_bytes

DTYPES = {
    0: torch.uint8,
    1: torch.int8,
    2: torch.int16,
    3: torch.int32,
    4: torch.int64,
    5: torch.float16,
    6: torch.float32,
    7: torch.float64,
    11: torch.bool,
    15: torch.bfloat16,
}
LONGEST = 9
"""The bytes that a whole number of 63 bits takes, 7 bits in each."""


def save_torchsharp(tensors: Mapping[str, torch.Tensor], path: str | os.PathLike[str]) -> None:
    """Write a file that TorchSharp's ``Module.load`` reads, in place of the old one as a whole.

    Args:
        tensors: names and tensors of any device, shape and strides.
        path: the file.

    Raises:
        ValueError, TypeError: a dtype that the languages do not share, or a name that is no text.
        OSError: the file cannot be written; the old one is whole.

    Spec: R29.2. Source: TorchSharp/NN/Module.cs, TorchSharp/Tensor/TensorExtensionMethods.cs
    """
    for name, tensor in tensors.items():
        check(name, tensor)
    numbers = {dtype: number for number, dtype in DTYPES.items()}
    with replacing(path) as file:
        file.write(_number(len(tensors)))
        for name, tensor in tensors.items():
            text = name.encode()
            file.write(_number(len(text)) + text)
            sizes = (numbers[tensor.dtype], tensor.dim(), *tensor.shape)
            file.write(b"".join(map(_number, sizes)))
            file.write(raw_bytes(tensor))


def load_torchsharp(path: str | os.PathLike[str]) -> dict[str, torch.Tensor]:
    """Read a file of TorchSharp's ``Module.save``, whose bytes need no module to be understood.

    Args:
        path: the file.

    Returns:
        Names and fresh tensors on the CPU, in their order.

    Raises:
        CheckpointError: the file is not whole, or another.
        FileNotFoundError: no such file.

    Spec: R29.2
    """
    with Path(path).open("rb") as file:
        reader = _Reader(file, Path(path).name)
        tensors: dict[str, torch.Tensor] = {}
        for _ in range(reader.number("a number of tensors")):
            name = reader.text()
            if name in tensors:
                reader.refuse("every name once", f"'{name}' twice")
            tensors[name] = reader.tensor(name)
        if reader.left:
            reader.refuse("an end after the last tensor", f"{reader.left} more bytes")
    return tensors


class _Reader:
    """Reads numbers, texts and tensors, none longer than the file."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self.left = os.fstat(file.fileno()).st_size

    def number(self, what: str) -> int:
        """Read a whole number of 63 bits."""
        value = 0
        for place in range(LONGEST):
            byte = self._take(1, what)[0]
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:  # noqa: PLR2004 - the last has no high bit
                break
        else:
            self.refuse(what, "a number beyond 63 bits")
        return value

    def text(self) -> str:
        """Read a name."""
        content = self._take(self.number("the length of a name"), "a name")
        try:
            name = content.decode()
        except UnicodeDecodeError:
            self.refuse("a name in UTF-8", "other bytes")
        if any(category(character) == "Cc" for character in name):
            self.refuse("a name", "one with control characters")
        return name

    def tensor(self, name: str) -> torch.Tensor:
        """Read a dtype, a shape and the values."""
        kind = self.number(f"a dtype of '{name}'")
        if kind not in DTYPES:
            self.refuse(f"a dtype of '{name}'", f"number {kind}")
        dimensions = self.number(f"dimensions of '{name}'")
        if dimensions > self.left:
            self.refuse(f"dimensions of '{name}'", f"{dimensions}")
        shape = [self.number(f"a shape of '{name}'") for _ in range(dimensions)]
        needed = reach = itemsize(DTYPES[kind])
        for size in shape:
            needed *= size
            # Strides grow by the sizes that are not 0, also where there is no element.
            reach *= max(size, 1)
        if needed > self.left or reach >= 2**63:
            self.refuse(f"{self.left} bytes at most for '{name}'", f"shape {tuple(shape)}")
        tensor = torch.empty(shape, dtype=DTYPES[kind])
        place = raw_bytes(tensor)
        self._file.readinto(place)  # type: ignore[attr-defined]
        self.left -= len(place)
        if not sound(tensor):
            self.refuse(f"bytes 0 and 1 as booleans of '{name}'", "others")
        return tensor

    def refuse(self, expected: str, got: str) -> NoReturn:
        """Say what the file should have had."""
        message = f"torchsharp: expected {expected} in {self._name}, got {got}"
        raise CheckpointError(message)

    def _take(self, count: int, what: str) -> bytes:
        if count > self.left:
            self.refuse(what, "its end")
        self.left -= count
        return self._file.read(count)


def _number(value: int) -> bytes:
    """Write a whole number, 7 bits in a byte, the lowest first."""
    content = bytearray()
    while value >= 0x80:  # noqa: PLR2004 - the last has no high bit
        content.append(value & 0x7F | 0x80)
        value >>= 7
    content.append(value)
    return bytes(content)
