"""Data sets: files, normalization and order."""

import gzip
import math
from pathlib import Path

import pytest
import torch

from bridge.data import FashionMnist, IdxError, order, read_idx
from bridge.parity.digest import digest
from tests.python.spec.files import write_idx, write_split
from tests.python.spec.vectors import Case, assert_same, bits, cases, refusal, tensor


@cases("idx")
def test_idx_vectors(case: Case, tmp_path: Path) -> None:
    """Files are read or refused as the vectors have it. Spec: R10.1, R10.2."""
    path = tmp_path / "data.idx"
    path.write_bytes(bytes.fromhex(case["file"]))
    with refusal(case):
        values = read_idx(path)
        assert_same(values, tensor(case["values"], "uint8", case["shape"]))


def test_refusal_is_an_idx_error(tmp_path: Path) -> None:
    """A file that is refused raises an error of its own kind. Spec: R10.2."""
    path = tmp_path / "labels.idx"
    path.write_bytes(b"")
    with pytest.raises(IdxError, match=r"labels\.idx"):
        read_idx(path)


def test_values_are_writable(tmp_path: Path) -> None:
    """The tensor is fresh: changing it changes no file. Spec: R10.1."""
    path = tmp_path / "data.idx"
    write_idx(path, torch.tensor([1, 2], dtype=torch.uint8))
    read_idx(path).zero_()
    assert read_idx(path).tolist() == [1, 2]


@cases("fashion_mnist")
def test_fashion_mnist_vectors(case: Case, tmp_path: Path) -> None:
    """Batches and refusals are those of the vectors. Spec: R10.3, R10.4."""
    shape, labels = case["images"], case["labels"]
    images = None if shape is None else torch.arange(math.prod(shape)) % 256
    write_split(tmp_path, "train", None if images is None else images.reshape(shape), labels)
    with refusal(case, folder=tmp_path):
        data = FashionMnist(tmp_path, train=True, dtype=getattr(torch, case["dtype"]))
        grey, targets = data.batch(torch.tensor(case["indices"]))
        assert grey.shape == (len(case["indices"]), 1, 28, 28)
        assert_same(grey[0].flatten()[:4], tensor(case["first"], case["dtype"]))
        assert_same(targets, tensor(case["targets"], "int64"))


def test_gzipped_files_come_first(tmp_path: Path) -> None:
    """A file may be gzipped, and is then preferred; each split has its own. Spec: R10.1, R10.3."""
    for name, fill in (("train", 1), ("t10k", 2)):
        write_split(tmp_path, name, torch.full((1, 28, 28), fill), [fill])
    labels = tmp_path / "t10k-labels-idx1-ubyte"
    packed = gzip.compress(labels.read_bytes()[:-1] + b"\x05")
    labels.with_name(f"{labels.name}.gz").write_bytes(packed)
    test = FashionMnist(tmp_path, train=False, dtype=torch.float64)
    assert (len(test), test.batch(torch.tensor([0]))[1].tolist()) == (1, [5])
    assert FashionMnist(tmp_path, train=True, dtype=torch.float64).labels.tolist() == [1]


@cases("order")
def test_order_vectors(case: Case) -> None:
    """Permutations are those of the vectors. Spec: R10.5."""
    drawn = order(case["count"], case["seed"], case["epoch"])
    assert drawn.dtype == torch.int64
    assert drawn[:8].tolist() == case["first"]
    assert digest([("order", drawn)]) == case["sha256"]


def test_order_leaves_the_default_generator_alone() -> None:
    """Drawing an order draws nothing from the generator of dropout and weights. Spec: R10.5."""
    before = torch.get_rng_state()
    assert sorted(order(5, 0, 0).tolist()) == [0, 1, 2, 3, 4]
    assert bits(torch.get_rng_state()) == bits(before)
