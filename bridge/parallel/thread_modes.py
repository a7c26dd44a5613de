"""The modes of torch that belong to a thread, carried over to others."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

AUTOCAST_DEVICES = ("cpu", "cuda")


class ThreadModes:
    """The caller's grad mode, inference mode and autocast, for the threads of its replicas.

    Other modes, such as the default dtype and deterministic algorithms, are those of the process.

    Spec: R3.4. Source: torch/nn/parallel/parallel_apply.py, torch/amp/autocast_mode.py
    """

    def __init__(self) -> None:
        """Take those of this thread."""
        self._grad = torch.is_grad_enabled()
        self._inference = torch.is_inference_mode_enabled()
        self._autocast = _autocast()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Put this thread in the modes for a while.

        Autocast's own context would drop the casts that other threads keep for their weights.
        """
        before = _autocast()
        own: Any = torch
        inference: AbstractContextManager[Any] = nullcontext()
        if self._inference:
            inference = own.inference_mode()
        with inference, torch.set_grad_enabled(self._grad):
            _set_autocast(self._autocast)
            try:
                yield
            finally:
                _set_autocast(before)

    def end(self) -> None:
        """Drop the weights that autocast has cast: an update may come before its context ends."""
        if any(enabled for enabled, _ in self._autocast[0]):
            torch.clear_autocast_cache()


Autocast = tuple[list[tuple[bool, torch.dtype]], bool]


def _autocast() -> Autocast:
    """Read whether autocast is on, to which dtype, for each device, and whether casts are kept."""
    own: Any = torch
    if hasattr(torch, "get_autocast_dtype"):  # since PyTorch 2.4
        states = [(own.is_autocast_enabled(d), own.get_autocast_dtype(d)) for d in AUTOCAST_DEVICES]
    else:
        states = [
            (own.is_autocast_cpu_enabled(), own.get_autocast_cpu_dtype()),
            (own.is_autocast_enabled(), own.get_autocast_gpu_dtype()),
        ]
    return states, own.is_autocast_cache_enabled()


def _set_autocast(autocast: Autocast) -> None:
    """Set what :func:`_autocast` has read."""
    own: Any = torch
    states, keeps = autocast
    if hasattr(torch, "set_autocast_dtype"):  # since PyTorch 2.4
        for device, (enabled, dtype) in zip(AUTOCAST_DEVICES, states, strict=True):
            own.set_autocast_enabled(device, enabled)
            own.set_autocast_dtype(device, dtype)
    else:
        (on_cpu, cpu_dtype), (on_gpu, gpu_dtype) = states
        own.set_autocast_cpu_enabled(on_cpu)
        own.set_autocast_cpu_dtype(cpu_dtype)
        own.set_autocast_enabled(on_gpu)
        own.set_autocast_gpu_dtype(gpu_dtype)
    own.set_autocast_cache_enabled(keeps)
