"""The verbs of data-parallel training, one file each, and the trainer that composes them."""

from bridge.parallel.average import average
from bridge.parallel.failure import Failure, ReplicaError
from bridge.parallel.gather import gather
from bridge.parallel.parallel_apply import parallel_apply
from bridge.parallel.replicate import replicate
from bridge.parallel.resync import resync
from bridge.parallel.scatter import scatter
from bridge.parallel.step import step
from bridge.parallel.trainer import Trainer

__all__ = [
    "Failure",
    "ReplicaError",
    "Trainer",
    "average",
    "gather",
    "parallel_apply",
    "replicate",
    "resync",
    "scatter",
    "step",
]
