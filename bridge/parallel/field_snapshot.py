"""What an optimizer or a scheduler holds, kept so that it can be given back."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import StepLR

# Schedulers have a base class of this name since 2.0, and one of another name before.
OBJECTS = (Optimizer, StepLR.__mro__[1])


class FieldSnapshot:
    """The attributes of one object, and what is in their containers; tensors are copied.

    Everything is given back in its place: tensors, lists and dicts stay the same objects.

    Args:
        target: an optimizer or a scheduler.
        apart: tensors that are not the object's own, such as the parameters of a model.
    """

    def __init__(self, target: object, apart: Iterable[torch.Tensor] = ()) -> None:
        """Keep the attributes of an object."""
        self._seen = {id(tensor) for tensor in apart} | {id(target)}
        self._give_back = self._dict(vars(target))

    def restore(self) -> None:
        """Give the attributes back."""
        with torch.no_grad():
            self._give_back()

    def _keep(self, value: Any) -> Callable[[], Any]:  # noqa: ANN401 - any attribute
        """Return a function that gives a value back as it is now."""
        if id(value) in self._seen:
            return lambda: value
        if isinstance(value, (torch.Tensor, dict, list, *OBJECTS)):
            self._seen.add(id(value))
        if isinstance(value, torch.Tensor):
            copy = value.detach().clone()
            return lambda: value.copy_(copy)
        if isinstance(value, dict):
            return self._dict(value)
        if isinstance(value, list):
            return self._list(value)
        inner: list[Any] = []
        if isinstance(value, tuple):
            inner = [self._keep(part) for part in value]
        if isinstance(value, OBJECTS):
            inner = [self._dict(vars(value))]
        return lambda: ([give_back() for give_back in inner], value)[1]

    def _dict(self, held: dict[Any, Any]) -> Callable[[], Any]:
        """Keep the entries of a dict."""
        entries = [(key, self._keep(value)) for key, value in held.items()]

        def give_back() -> dict[Any, Any]:
            kept = {key: value() for key, value in entries}
            held.clear()
            held.update(kept)
            return held

        return give_back

    def _list(self, held: list[Any]) -> Callable[[], Any]:
        """Keep the items of a list."""
        items = [self._keep(item) for item in held]

        def give_back() -> list[Any]:
            held[:] = [item() for item in items]
            return held

        return give_back
