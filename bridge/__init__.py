"""A PyTorch training loop and its C# TorchSharp twin, with one meaning.

The verbs, the trainer and the packages are imported when they are first used, so that
``import bridge.dotnet`` works in a Python that has no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridge.parallel import (
        BrokenGroupError,
        ChannelParallelConv2d,
        ColumnParallelLinear,
        DataParallel,
        Failure,
        LinearScaling,
        Pipeline,
        RandomStates,
        ReplicaError,
        RowParallelLinear,
        SyncBatchNorm,
        Trainer,
        average,
        bf16_linear,
        bf16_matmul,
        clip_gradients,
        exchange,
        gather,
        mixed_precision,
        parallel_apply,
        replicate,
        resync,
        scatter,
        scatter_kwargs,
        step,
        whole_state,
    )
    from bridge.trace.recorder import Recorder as trace  # noqa: N813 - the module can be called

__version__ = "0.1.0"

__all__ = [
    "BrokenGroupError",
    "ChannelParallelConv2d",
    "ColumnParallelLinear",
    "DataParallel",
    "Failure",
    "LinearScaling",
    "Pipeline",
    "RandomStates",
    "ReplicaError",
    "RowParallelLinear",
    "SyncBatchNorm",
    "Trainer",
    "average",
    "bf16_linear",
    "bf16_matmul",
    "clip_gradients",
    "exchange",
    "gather",
    "mixed_precision",
    "parallel_apply",
    "replicate",
    "resync",
    "scatter",
    "scatter_kwargs",
    "step",
    "trace",
    "whole_state",
]

MODULES = (
    "checkpoint",
    "convert",
    "data",
    "dotnet",
    "models",
    "optim",
    "parallel",
    "parity",
    "schedulers",
    "trace",
)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute can be anything
    """Import the verbs, the trainer and the packages on first use."""
    if name in MODULES:
        return import_module(f"bridge.{name}")
    if name in __all__:
        return getattr(import_module("bridge.parallel"), name)
    message = f"module 'bridge' has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__, *MODULES})
