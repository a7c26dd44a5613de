"""Trees in safetensors files, with a digest."""

import hashlib
import os
from pathlib import Path
from typing import Any

from bridge.checkpoint.checkpoint_error import CheckpointError
from bridge.checkpoint.document import decode, encode
from bridge.checkpoint.safetensors import SEAL, UNSEALED, head, store, unsealed, values

VERSION = "1"
VERSION_KEY = "bridge_version"
TREE_KEY = "bridge_tree"


def write(tree: object, path: str | os.PathLike[str]) -> None:
    """Write a tree to a safetensors file, in place of the old one as a whole.

    The tensors of the dict under ``model`` have their own names there, so that plain tools open
    them; others have names that start with ``__bridge__``. The rest is JSON in the metadata, and so
    is a SHA-256 of the whole file, in which its own 64 digits count as zeros.

    Args:
        tree: dicts with keys of type str and int, lists, tuples, tensors, numbers, texts, booleans
            and None; types derived from these come back as these.
        path: the file.

    Raises:
        ValueError, TypeError: something else, by its place in the tree.
        OSError: the file cannot be written; the old one is whole.

    Spec: R26.4, R26.5, R26.7
    """
    text, tensors = encode(tree)
    metadata = {"format": "pt", VERSION_KEY: VERSION, TREE_KEY: text, SEAL: UNSEALED}
    store(tensors, path, metadata)


def read(path: str | os.PathLike[str]) -> Any:  # noqa: ANN401 - any tree
    """Read the tree that ``write`` wrote, in either language.

    Args:
        path: the file.

    Returns:
        The tree, with fresh tensors on the CPU.

    Raises:
        CheckpointError: a file of another maker or version, or one of which any bit has changed.
        FileNotFoundError: no such file.

    Spec: R26.4, R26.5
    """
    name = Path(path).name
    with Path(path).open("rb") as file:
        content, header = head(file, name)
        metadata = header.metadata
        if not {VERSION_KEY, TREE_KEY, SEAL} <= set(metadata):
            got = "a plain safetensors file: see load_file"
            message = f"read: expected a checkpoint in {name}, got {got}"
            raise CheckpointError(message)
        if metadata[VERSION_KEY] != VERSION:
            message = f"read: expected version {VERSION} in {name}, got '{metadata[VERSION_KEY]}'"
            raise CheckpointError(message)
        digest = hashlib.sha256(unsealed(content, metadata))
        tensors = values(file, header, name, digest)
    if digest.hexdigest() != metadata[SEAL]:
        message = f"read: expected SHA-256 {metadata[SEAL]} of {name}, got {digest.hexdigest()}"
        raise CheckpointError(message)
    return decode(metadata[TREE_KEY], tensors, name)
