"""The values that a pickle of state dicts makes from names and arguments."""

import math
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from bridge.checkpoint.archive import Archive
from bridge.checkpoint.entry import DTYPES as FORMAT
from bridge.checkpoint.entry import itemsize, sound
from bridge.parity.digest import dtype_name, raw_bytes

STORAGES = {
    "torch.BoolStorage": torch.bool,
    "torch.ByteStorage": torch.uint8,
    "torch.CharStorage": torch.int8,
    "torch.ShortStorage": torch.int16,
    "torch.IntStorage": torch.int32,
    "torch.LongStorage": torch.int64,
    "torch.HalfStorage": torch.float16,
    "torch.BFloat16Storage": torch.bfloat16,
    "torch.FloatStorage": torch.float32,
    "torch.DoubleStorage": torch.float64,
}
DTYPES = {f"torch.{dtype_name(dtype)}": dtype for dtype in FORMAT.values()}
GLOBALS = {
    "collections.OrderedDict",
    "collections.Counter",
    "torch.Size",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_tensor_v2",
    *STORAGES,
}
"""What a file may name, besides dtypes; none of it is looked up."""


@dataclass(frozen=True)
class Global:
    """A name that a pickle gave."""

    name: str


@dataclass(frozen=True)
class Storage:
    """The memory of one or several tensors, as a tensor of one dimension."""

    record: str
    kind: str
    values: torch.Tensor


class Storages:
    """The storages of an archive, each read once, when a tensor first names it.

    Spec: R26.11
    """

    def __init__(self, archive: Archive) -> None:
        """Take the archive that holds them."""
        self._archive = archive
        self._known: dict[str, Storage] = {}

    def find(self, reference: Any) -> Storage:  # noqa: ANN401 - what a pickle says
        """Find the storage of ``("storage", type, key, location, elements)``."""
        word, kind, key, _, count = reference
        named = isinstance(kind, Global) and kind.name in STORAGES
        if word != "storage" or not named or type(key) is not str or type(count) is not int:
            raise TypeError(reference)
        record = f"data/{key}"
        if record not in self._known:
            self._known[record] = self._read(record, kind.name, count)
        known = self._known[record]
        if (known.kind, len(known.values)) != (kind.name, count):
            self._archive.refuse(f"one type and size of {record}", "two")
        return known

    def _read(self, record: str, kind: str, count: int) -> Storage:
        """Read a storage whose record has its size."""
        dtype = STORAGES[kind]
        size, stated = self._archive.size(record), count * itemsize(dtype)
        if size != stated:
            self._archive.refuse(f"{stated} bytes of {record}", f"{size}")
        values = torch.empty(count, dtype=dtype)
        self._archive.read_into(record, raw_bytes(values))
        if not sound(values):
            self._archive.refuse(f"bytes 0 and 1 as booleans of {record}", "others")
        return Storage(record, kind, values)


def rebuild(made: Any, arguments: Any, *, archive: Archive) -> Any:  # noqa: ANN401 - what a pickle says
    """Make a value; what does not fit is a TypeError.

    Spec: R26.10. Source: torch/_utils.py
    """
    if not isinstance(made, Global) or not isinstance(arguments, tuple):
        raise TypeError(made)
    if made.name == "collections.OrderedDict" and not arguments:
        return OrderedDict()
    if made.name == "torch._utils._rebuild_tensor_v2":
        return _tensor(*arguments, archive=archive)
    if made.name == "torch._utils._rebuild_parameter":
        return _parameter(*arguments, archive=archive)
    (argument,) = arguments
    if made.name == "collections.Counter" and type(argument) is dict:
        return Counter(argument)
    if made.name == "torch.Size" and _whole(argument):
        return torch.Size(argument)
    raise TypeError(made)


def _tensor(  # noqa: PLR0913, PLR0917 - PyTorch's arguments
    storage: Any,  # noqa: ANN401 - what a pickle says
    offset: Any,  # noqa: ANN401
    size: Any,  # noqa: ANN401
    stride: Any,  # noqa: ANN401
    requires_grad: Any,  # noqa: ANN401
    hooks: Any,  # noqa: ANN401
    *,
    archive: Archive,
) -> torch.Tensor:
    """Make a tensor inside of its storage."""
    if not (isinstance(storage, Storage) and _whole((offset,)) and _whole(size) and _whole(stride)):
        raise TypeError(storage)
    if len(size) != len(stride) or hooks != {} or type(requires_grad) is not bool:
        raise TypeError(size)
    count = math.prod(size)
    reach = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    fits = reach < len(storage.values) if count else offset <= len(storage.values)
    # Sizes of 0 count as 1, so that no product of some of them overflows.
    bytes_ = math.prod(max(n, 1) for n in size) * storage.values.element_size()
    if not fits or bytes_ >= 2**63:
        expected = f"a tensor inside of the {len(storage.values)} elements of {storage.record}"
        archive.refuse(expected, f"offset {offset}, shape {size}, strides {stride}")
    # .data, so that it is no view of another tensor, as PyTorch's own is not.
    tensor = storage.values.as_strided(size, stride, offset).data
    _check_flag(tensor, requires_grad, archive)
    return tensor.requires_grad_(requires_grad)


def _parameter(data: Any, requires_grad: Any, hooks: Any, *, archive: Archive) -> nn.Parameter:  # noqa: ANN401 - what a pickle says
    """Make a parameter."""
    if type(data) is not torch.Tensor or hooks != {} or type(requires_grad) is not bool:
        raise TypeError(data)
    _check_flag(data, requires_grad, archive)
    return nn.Parameter(data.detach(), requires_grad)


def _check_flag(tensor: torch.Tensor, requires_grad: bool, archive: Archive) -> None:  # noqa: FBT001 - the flag
    """Refuse a flag that only floating point can have."""
    if requires_grad and not tensor.is_floating_point():
        archive.refuse("gradients of floating point", dtype_name(tensor.dtype))


def _whole(value: Any) -> bool:  # noqa: ANN401 - what a pickle says
    """Tell whether a value is a tuple of whole numbers from 0."""
    return isinstance(value, tuple) and all(type(item) is int and item >= 0 for item in value)
