"""Random states: one per replica."""

from collections.abc import Sequence

import torch
from torch import nn

FRACTIONAL = (nn.FractionalMaxPool2d, nn.FractionalMaxPool3d)
DROPOUT = (
    nn.Dropout,
    nn.Dropout1d,
    nn.Dropout2d,
    nn.Dropout3d,
    nn.AlphaDropout,
    nn.FeatureAlphaDropout,
)


class RandomStates:
    """Gives each replica a random stream of its own; replica 0 stays on the caller's.

    Replica i starts with the stream of ``manual_seed(initial_seed() + i)`` and keeps it from step
    to step: a run is reproducible, its replicas draw differently, and both languages draw alike.

    Args:
        devices: one per replica.

    Spec: R20.1, R20.2
    """

    def __init__(self, devices: Sequence[torch.device]) -> None:
        """Seed the streams of all replicas but the first."""
        seed = torch.initial_seed()
        self._devices = list(devices)
        self._states = [
            _seeded((seed + index) % 2**64, place) for index, place in enumerate(devices)
        ]
        self._caller: list[torch.Tensor] = []

    def enter(self, index: int) -> None:
        """Put the stream of a replica in the place of the caller's."""
        if index > 0:
            self._caller = _take(self._devices[index])
            _put(self._devices[index], self._states[index])

    def leave(self, index: int) -> None:
        """Keep the stream of a replica and give the caller's back."""
        if index > 0:
            self._states[index] = _take(self._devices[index])
            _put(self._devices[index], self._caller)

    def snapshot(self) -> list[list[torch.Tensor]]:
        """Return the caller's states and those of the replicas, for :meth:`restore`."""
        return [*map(_take, self._places()), *self._states[1:]]

    def restore(self, snapshot: Sequence[list[torch.Tensor]]) -> None:
        """Go back to a snapshot."""
        places = self._places()
        for place, states in zip(places, snapshot[: len(places)], strict=True):
            _put(place, states)
        self._states[1:] = snapshot[len(places) :]

    def moved(self, snapshot: Sequence[list[torch.Tensor]]) -> bool:
        """Tell whether anything has drawn since a snapshot."""
        pairs = zip(self.snapshot(), snapshot, strict=True)
        return not all(
            torch.equal(*pair) for now, then in pairs for pair in zip(now, then, strict=True)
        )

    def _places(self) -> list[torch.device]:
        """List the devices, each once: the caller has a stream on each."""
        return list(dict.fromkeys(self._devices))


def draws(module: nn.Module) -> bool:
    """Tell whether a module draws random numbers in its present mode, as far as its layers tell.

    Those are dropout, RReLU, fractional pooling, recurrent layers, attention and transformers with
    dropout; a module of your own says so with an attribute ``draws = True``.

    Spec: R20.3
    """
    return any(_draws(layer) for layer in module.modules())


def _draws(layer: nn.Module) -> bool:
    """Tell whether one layer draws by itself."""
    if getattr(layer, "draws", False) or isinstance(layer, FRACTIONAL):
        return True
    if not layer.training:
        return False
    if isinstance(layer, DROPOUT):
        return layer.p > 0
    if isinstance(layer, nn.RNNBase | nn.MultiheadAttention):
        return layer.dropout > 0
    return isinstance(layer, nn.RReLU)


def _seeded(seed: int, device: torch.device) -> list[torch.Tensor]:
    """Make the state of a seeded stream: that of the CPU, and that of a GPU."""
    states = [torch.Generator().manual_seed(seed).get_state()]
    if device.type == "cuda":
        states.append(torch.Generator(device).manual_seed(seed).get_state())
    return states


def _take(device: torch.device) -> list[torch.Tensor]:
    """Read the present state: that of the CPU, and that of a GPU."""
    states = [torch.get_rng_state()]
    if device.type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    return states


def _put(device: torch.device, states: Sequence[torch.Tensor]) -> None:
    """Set the present state: that of the CPU, and that of a GPU."""
    torch.set_rng_state(states[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states[1], device)
