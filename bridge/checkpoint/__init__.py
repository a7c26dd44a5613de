"""Checkpoint files that either language opens."""

from bridge.checkpoint.as_state_dict import as_state_dict
from bridge.checkpoint.checkpoint_error import CheckpointError
from bridge.checkpoint.safetensors import load_file, load_metadata, save_file
from bridge.checkpoint.torch_file import load, save
from bridge.checkpoint.tree_file import read, write

__all__ = [
    "CheckpointError",
    "as_state_dict",
    "load",
    "load_file",
    "load_metadata",
    "read",
    "save",
    "save_file",
    "write",
]
