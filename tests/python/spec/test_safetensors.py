"""Files of named tensors in the safetensors format."""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from bridge.checkpoint import CheckpointError, load_file, load_metadata, save_file
from tests.python.spec.checkpoints import FILE, state, written
from tests.python.spec.vectors import Case, assert_same, cases, refusal, tree

ALL = {
    "flag": torch.tensor([True, False, True]),
    "half": torch.tensor([1.5]).half(),
    "bf16": torch.tensor(-0.25).bfloat16(),
    "turned": torch.arange(6.0).reshape(2, 3).t(),
    "part": torch.arange(10)[2:9:3],
    "none": torch.empty(0, 3, dtype=torch.float64),
    "small": torch.tensor([-1], dtype=torch.int8),
}


@cases("safetensors")
def test_vectors_hold(case: Case, tmp_path: Path) -> None:
    """Files are read, written and refused as the vectors have it. Spec: R26.1, R26.2."""
    path = written(case, tmp_path)
    with refusal(case):
        tensors = load_file(path)
        assert_same(tensors, {name: tree(value) for name, value in case["tensors"].items()})
        assert load_metadata(path) == case["metadata"]
        if case["written"]:
            content = path.read_bytes()
            save_file(tensors, path, case["metadata"])
            assert path.read_bytes() == content


def test_refusal_has_a_type_of_its_own(tmp_path: Path) -> None:
    """What is wrong with a file is a CheckpointError; a missing file is not. Spec: R26.2."""
    path = tmp_path / FILE
    path.write_bytes(b"")
    with pytest.raises(CheckpointError, match=FILE):
        load_file(path)
    with pytest.raises(CheckpointError, match=FILE):
        load_metadata(path)
    with pytest.raises(FileNotFoundError):
        load_file(tmp_path / "none")


def test_every_cut_is_refused(tmp_path: Path) -> None:
    """A file that ends early, wherever, is refused. Spec: R26.2."""
    path = tmp_path / FILE
    save_file(ALL, path)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(CheckpointError):
            load_file(path)


def test_layouts_come_back_as_values(tmp_path: Path) -> None:
    """Strides, offsets and gradients are left behind; the tensors are aligned. Spec: R26.1."""
    path = tmp_path / FILE
    tied: torch.Tensor = torch.nn.Parameter(torch.ones(2))
    save_file(ALL | {"tied": tied, "again": tied}, path)
    tensors = load_file(path)
    assert list(tensors) == [*ALL, "tied", "again"]
    for name, tensor in (ALL | {"tied": tied, "again": tied}).items():
        assert torch.equal(tensors[name], tensor)
        assert tensors[name].is_contiguous()
    assert tensors["tied"].data_ptr() != tensors["again"].data_ptr()
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    assert length % 8 == 0
    for name, entry in json.loads(content[8 : 8 + length]).items():
        assert entry["data_offsets"][0] % tensors[name].element_size() == 0


DTYPES = "bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64"
REFUSED: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "complex": (
        {"a": torch.zeros(1, dtype=torch.complex64)},
        {},
        f"safetensors: expected one of {DTYPES} for 'a', got complex64",
    ),
    "sparse": (
        {"a": torch.eye(2).to_sparse()},
        {},
        "safetensors: expected a dense tensor with values as 'a', got another",
    ),
    "the name of the metadata": (
        {"__metadata__": torch.zeros(1)},
        {},
        "safetensors: expected another name than '__metadata__', got it for a tensor",
    ),
    "half of a pair of surrogates": (
        {"\ud800": torch.zeros(1)},
        {},
        "safetensors: expected text as name, got half of a pair of surrogates",
    ),
    "such metadata": (
        {},
        {"a": "\udc00"},
        "safetensors: expected text as metadata, got half of a pair of surrogates",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_is_refused(name: str, tmp_path: Path) -> None:
    """A dtype or name that the format does not have leaves the old file alone. Spec: R26.3."""
    tensors, metadata, text = REFUSED[name]
    path = tmp_path / FILE
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match="safetensors") as caught:
        save_file(tensors, path, metadata)
    assert str(caught.value) == text
    assert path.read_bytes() == b"old"


@pytest.mark.parity
def test_the_library_reads_ours_and_we_read_its(tmp_path: Path) -> None:
    """The safetensors library and we give each other the same tensors. Spec: R26.1, R26.6."""
    library = pytest.importorskip("safetensors.torch", reason="no safetensors library here")
    core = importlib.import_module("safetensors")
    path = tmp_path / FILE
    model = state()["model"]
    tensors = {name: tensor.contiguous() for name, tensor in {**ALL, **model}.items()}
    save_file(tensors, path, {"format": "pt", "ä": "\n"})
    read = library.load_file(path)
    assert {name: read[name] for name in tensors}.keys() == read.keys()
    for name, tensor in tensors.items():
        assert_same(read[name], tensor)
    with core.safe_open(path, "pt") as opened:
        assert opened.metadata() == {"format": "pt", "ä": "\n"}
    library.save_file(tensors, path, {"format": "pt"})
    ours = load_file(path)
    assert_same({name: ours[name] for name in tensors}, tensors)
    assert load_metadata(path) == {"format": "pt"}
