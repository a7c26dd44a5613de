"""Files of ``torch.save``, without running what is in them."""

import os
from pathlib import Path
from typing import Any

import torch

from bridge.checkpoint.archive import Archive
from bridge.checkpoint.atomic import replacing
from bridge.checkpoint.plain import Plain
from bridge.checkpoint.unpickler import Unpickler


def save(value: object, path: str | os.PathLike[str]) -> None:
    """Write a file that ``torch.load`` reads, in place of the old one as a whole.

    Args:
        value: a state dict, or any tree of dicts with keys of type str and int, lists, tuples,
            tensors, dtypes, numbers, texts, booleans and None; tensors that share storage share it
            when they are read.
        path: the file.

    Raises:
        ValueError, TypeError: something else, by its place in the tree.
        OSError: the file cannot be written; the old one is whole.

    Spec: R26.7, R26.9. Source: torch/serialization.py
    """
    try:
        Plain().check(value)
    except (ValueError, TypeError) as error:
        message = f"save: expected {error}"
        raise type(error)(message) from None
    with replacing(path) as file:
        torch.save(value, file)


def load(path: str | os.PathLike[str]) -> Any:  # noqa: ANN401 - any tree
    """Read a file of ``torch.save`` that holds a state dict, or a tree of values and tensors.

    Nothing in the file is run: an interpreter reads its pickle that knows the opcodes and names of
    state dicts, looks none of them up, and refuses every other by its name.

    Args:
        path: the file.

    Returns:
        The tree, with fresh tensors on the CPU; those that shared storage do so again.

    Raises:
        CheckpointError: the file is not whole, or holds something else.
        FileNotFoundError: no such file.

    Spec: R26.9, R26.10, R26.11
    """
    with Path(path).open("rb") as file:
        archive = Archive(file, Path(path).name)
        value = Unpickler(archive).load()
    try:
        Plain().check(value)
    except (ValueError, TypeError) as error:
        expected, _, got = str(error).rpartition(", got ")
        archive.refuse(expected, got)
    return value
