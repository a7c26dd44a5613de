"""Copies the tensors of a model."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeGuard

import torch
from torch import nn

from bridge.parallel.devices import differ

Key = tuple[int, torch.dtype]


class TensorCopier:
    """Copies the tensors of a model: values, flags, and which of them share storage.

    What is on the device of the model goes to that of the replica, anything else stays where it
    is. What a forward left behind, and is no leaf of a graph, is copied as a value.

    Args:
        tensors: all that will be copied.
        source: the device of the model.
        target: the device of the replica.

    Spec: R4.7
    """

    def __init__(
        self, tensors: Iterable[torch.Tensor], source: torch.device, target: torch.device
    ) -> None:
        """Note which of the tensors share storage."""
        self._source = source
        self._target = target
        counts = Counter(_key(tensor) for tensor in tensors)
        self._shared = {key for key, count in counts.items() if key[0] != 0 and count > 1}
        self._storages: dict[Key, torch.Tensor] = {}

    @torch.no_grad()
    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copy a tensor, without what its user hung on it."""
        requires_grad = tensor.is_leaf and tensor.requires_grad
        data = self._data(tensor)
        if isinstance(tensor, nn.Parameter):
            return nn.Parameter(data, requires_grad)
        return data.requires_grad_(requires_grad)

    def generator(self, generator: torch.Generator) -> torch.Generator:
        """Copy a generator with its state."""
        copy = torch.Generator(self._place(generator.device))
        copy.set_state(generator.get_state())
        return copy

    def _data(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copy the values, into the copy of the storage where that is shared."""
        key = _key(tensor)
        place = self._place(tensor.device)
        if key not in self._shared:
            return tensor.detach().to(place, copy=True)
        if key not in self._storages:
            count = _storage(tensor).nbytes() // tensor.element_size()
            self._storages[key] = tensor.detach().as_strided((count,), (1,), 0).to(place, copy=True)
        storage = self._storages[key]
        view = storage.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        return storage.new_empty(0).set_(view)  # type: ignore[call-overload, no-any-return]

    def _place(self, device: torch.device) -> torch.device:
        """Say where the copy of what is on a device belongs."""
        return device if differ(device, self._source) else self._target


def is_plain(value: object) -> TypeGuard[torch.Tensor]:
    """Tell whether a value is a tensor that has no more to it than values, flags and storage."""
    return (
        type(value) in (torch.Tensor, nn.Parameter)
        and isinstance(value, torch.Tensor)
        and value.layout is torch.strided
        and not value.is_quantized
    )


def _key(tensor: torch.Tensor) -> Key:
    """Tell storages from each other; those without memory are 0."""
    pointer = 0 if tensor.is_meta else _storage(tensor).data_ptr()
    return pointer, tensor.dtype


def _storage(tensor: torch.Tensor) -> Any:  # noqa: ANN401 - torch 1.13 does not name the type
    """Return the storage of a tensor."""
    if hasattr(tensor, "untyped_storage"):
        return tensor.untyped_storage()
    return tensor.storage().untyped()  # type: ignore[no-untyped-call]
