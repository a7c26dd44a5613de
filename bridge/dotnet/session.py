"""What every C# object with a model has in common, seen from Python."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from bridge.dotnet.errors import WorkerDied
from bridge.dotnet.host import Host
from bridge.dotnet.tensors import Layout, view

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")
U = TypeVar("U")


class Session:
    """A C# trainer that is held by a handle: its state, its digest, its end."""

    def __init__(self, host: Host, created: dict[str, Any]) -> None:
        """Hold what C# has made.

        Args:
            host: where it was made.
            created: the facade's reply.
        """
        self._host = host
        self._handle: int = created["handle"]

    @property
    def manifest(self) -> list[dict[str, Any]]:
        """What the state holds, in order: ``name``, ``dtype``, ``shape``, ``kind`` and more."""
        return list(self._manifest()["tensors"])

    def state_dict(self) -> OrderedDict[str, torch.Tensor]:
        """Return a copy of the state, in the order of the C# module."""
        manifest = self._manifest()
        with self._host.segment(manifest["bytes"]) as memory:
            self._host.call("state.write", handle=self._handle)
            places = manifest["tensors"]
            return OrderedDict((place["name"], view(memory, place).clone()) for place in places)

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:  # noqa: FBT001, FBT002 - as in torch
        """Copy a state into every replica.

        Args:
            state: names to tensors or numpy arrays.
            strict: refuse a state that lacks a name of the module, or has another one.

        Raises:
            DotnetError: names that are missing, unexpected or of another shape.
        """
        layout = Layout("load_state_dict")
        tensors = [{"name": name, **layout.place(value)} for name, value in state.items()]
        with self._host.segment(layout.size) as memory:
            layout.write(memory)
            self._host.call("state.read", handle=self._handle, tensors=tensors, strict=strict)

    def set(self, *, lr: float) -> None:
        """Change the learning rate of every parameter group, from the next step on."""
        self._host.call("trainer.set", handle=self._handle, lr=lr)

    def digest(self) -> str:
        """Return the digest of the parameters, which is equal where all their bits are."""
        return str(self._host.call("digest", handle=self._handle)["digest"])

    def close(self) -> None:
        """Let go of the C# object without waiting for it; again is harmless."""
        if self._handle:
            with suppress(WorkerDied):
                self._host.submit("close", handle=self._handle)
            self._handle = 0

    def __enter__(self) -> "Self":
        """Return the object itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def _manifest(self) -> dict[str, Any]:
        """Ask for the layout of the state."""
        manifest: dict[str, Any] = self._host.call("state.manifest", handle=self._handle)
        return manifest


def then(source: Future[T], convert: Callable[[T], U]) -> Future[U]:
    """Return a future of the converted result."""
    target: Future[U] = Future()
    target.set_running_or_notify_cancel()

    def finish(done: Future[T]) -> None:
        try:
            target.set_result(convert(done.result()))
        except Exception as error:  # noqa: BLE001 - whoever waits for the future gets it
            target.set_exception(error)

    source.add_done_callback(finish)
    return target
