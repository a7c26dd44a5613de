"""Checkpoint files that either language opens."""

from bridge.checkpoint.checkpoint_error import CheckpointError
from bridge.checkpoint.safetensors import load_file, load_metadata, save_file
from bridge.checkpoint.tree_file import read, write

__all__ = ["CheckpointError", "load_file", "load_metadata", "read", "save_file", "write"]
