"""The verbs of data-parallel training, one file each, and the trainer that composes them."""

from bridge.parallel.average import average
from bridge.parallel.bf16 import bf16_linear, bf16_matmul
from bridge.parallel.clip import clip_gradients
from bridge.parallel.data_parallel import DataParallel
from bridge.parallel.failure import Failure, ReplicaError
from bridge.parallel.gather import gather
from bridge.parallel.group import BrokenGroupError, exchange
from bridge.parallel.linear_scaling import LinearScaling
from bridge.parallel.mixed_precision import mixed_precision
from bridge.parallel.parallel_apply import parallel_apply
from bridge.parallel.pipeline import Pipeline
from bridge.parallel.random_states import RandomStates
from bridge.parallel.replicate import replicate
from bridge.parallel.resync import resync
from bridge.parallel.scatter import scatter, scatter_kwargs
from bridge.parallel.split_layer import whole_state
from bridge.parallel.step import step
from bridge.parallel.sync_batch_norm import SyncBatchNorm
from bridge.parallel.tensor_parallel import (
    ChannelParallelConv2d,
    ColumnParallelLinear,
    RowParallelLinear,
)
from bridge.parallel.trainer import Trainer

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
    "whole_state",
]
