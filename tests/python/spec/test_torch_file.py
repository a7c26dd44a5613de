"""Files of ``torch.save``, without running what is in them."""

import copy
import io
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from bridge.checkpoint import CheckpointError, as_state_dict, load, save
from bridge.parallel.state_dict import load_state_dict
from tests.python.spec.checkpoints import FILE, assert_exact, values, written
from tests.python.spec.vectors import Case, cases, refusal

WEIGHTS_ONLY = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 6)


def torch_load(path: Path) -> Any:  # noqa: ANN401 - any tree
    """Load a file as PyTorch does."""
    return torch.load(path, weights_only=True) if WEIGHTS_ONLY else torch.load(path)


def check_written(case: Case, path: Path) -> None:
    """Compare a file with its tree: values, shared storage and strides."""
    for tree in (load(path), torch_load(path)):
        assert_exact(tree, values(case["tree"]))
        if "shared" in case:
            tree[case["shared"][0]].fill_(-1)
            assert all(bool((tree[name] == -1).all()) for name in case["shared"])
        for name, strides in case.get("strides", {}).items():
            assert list(tree[name].stride()) == strides


@cases("torch_file-1.13")
def test_files_of_pytorch_1_13(case: Case, tmp_path: Path) -> None:
    """What torch.save of 1.13 wrote is read. Spec: R26.9, R26.11."""
    check_written(case, written(case, tmp_path))


@cases("torch_file-2.10")
def test_files_of_pytorch_2_10(case: Case, tmp_path: Path) -> None:
    """What torch.save of 2.10 wrote is read. Spec: R26.9, R26.11."""
    check_written(case, written(case, tmp_path))


@cases("torch_file-csharp")
def test_files_of_csharp(case: Case, tmp_path: Path) -> None:
    """What BridgeSharp wrote is read, by PyTorch too. Spec: R26.9, R26.11."""
    check_written(case, written(case, tmp_path))


@cases("torch_file")
def test_hostile_files_are_refused(case: Case, tmp_path: Path) -> None:
    """A file that could do harm is refused as the vectors have it. Spec: R26.10."""
    path = written(case, tmp_path)
    with refusal(case):
        load(path)


def trained() -> tuple[nn.Module, torch.optim.Optimizer]:
    """Make a model with a tied parameter and its optimizer, with state."""
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2))
    model[2].weight = model[0].weight
    optimizer = torch.optim.Adam(model.parameters(), amsgrad=True)
    model(torch.randn(3, 2)).sum().backward()
    optimizer.step()
    return model, optimizer


def test_states_go_both_ways(tmp_path: Path) -> None:
    """States of a model and an optimizer are read by torch.load and by load. Spec: R26.9."""
    model, optimizer = trained()
    states = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    path = tmp_path / FILE
    save(states, path)
    for read in (load(path), torch_load(path)):
        assert_exact(read, states)
        assert type(read["model"]) is OrderedDict
        assert vars(read["model"]) == vars(model.state_dict())
        tied = read["model"]["0.weight"], read["model"]["2.weight"]
        assert tied[0].data_ptr() == tied[1].data_ptr()
        other, twin = trained()
        load_state_dict(other, as_state_dict(read["model"]))
        twin.load_state_dict(read["optimizer"])
        assert_exact(dict(other.state_dict()), dict(model.state_dict()))
        assert_exact(twin.state_dict()["state"], optimizer.state_dict()["state"])


def test_types_of_values_come_back(tmp_path: Path) -> None:
    """Counters, sizes, dtypes and parameters come back as they were. Spec: R26.9."""
    path = tmp_path / FILE
    value = [
        Counter([3, 3, 5]),
        torch.Size([1, 2]),
        torch.bfloat16,
        nn.Parameter(torch.ones(2), requires_grad=False),
        torch.ones(1, requires_grad=True),
    ]
    save(value, path)
    read = load(path)
    assert list(map(type, read)) == list(map(type, value))
    assert read[:3] == value[:3]
    assert [tensor.requires_grad for tensor in read[3:]] == [False, True]


@pytest.mark.parametrize("protocol", [3, 4])
def test_other_protocols_are_refused(protocol: int, tmp_path: Path) -> None:
    """A file of another protocol of pickle is refused. Spec: R26.10."""
    path = tmp_path / FILE
    torch.save({"a": torch.ones(1)}, path, pickle_protocol=protocol)
    with pytest.raises(CheckpointError, match=f"expected pickle protocol 2 in .*, got {protocol}$"):
        load(path)


def test_whole_models_are_refused_by_name(tmp_path: Path) -> None:
    """A model saved as an object is refused by its type. Spec: R26.10."""
    path = tmp_path / FILE
    torch.save(nn.Linear(1, 1), path)
    with pytest.raises(CheckpointError, match=r"got torch\.nn\.modules\.linear\.Linear$"):
        load(path)


def test_changed_bytes_do_no_harm(tmp_path: Path) -> None:
    """A changed byte leaves a tree or a CheckpointError, and nothing else. Spec: R26.10."""
    file = io.BytesIO()
    torch.save({"a": torch.ones(2), "b": [(1, 2.5), "text"]}, file)
    with zipfile.ZipFile(file) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    (name,) = (name for name in records if name.endswith("data.pkl"))
    path = tmp_path / FILE
    refused = 0
    for place in range(len(records[name])):
        changed = bytearray(records[name])
        changed[place] ^= 0x21
        with zipfile.ZipFile(path, "w") as archive:
            for record, content in {**records, name: bytes(changed)}.items():
                archive.writestr(record, content)
        try:
            load(path)
        except CheckpointError:
            refused += 1
    assert refused > len(records[name]) / 2


def held() -> list[Any]:
    """Make a list that holds itself."""
    value: list[Any] = []
    value.append(value)
    return value


def odd() -> OrderedDict[str, int]:
    """Make a dict with an attribute."""
    value = OrderedDict(a=1)
    value.extra = 1  # type: ignore[attr-defined]
    return value


DTYPES = "bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64"
REFUSED = {
    "an object": (
        {"a": [nn.Linear(1, 1)]},
        'what state dicts are made of at tree["a"][0], got Linear',
    ),
    "a set": ([{1}], "what state dicts are made of at tree[0], got set"),
    "a key": ({1.5: 1}, "keys of type str or int at tree, got float"),
    "65 bits": ([2**63], "integers of 64 bits at tree[0], got 9223372036854775808"),
    "surrogates": (["\ud800"], "text at tree[0], got half of a pair of surrogates"),
    "an attribute": (odd(), "no attributes but _metadata at tree, got extra"),
    "itself": (held(), "at most 100 levels and 10000000 places, got more"),
    "a sparse tensor": (
        torch.eye(2).to_sparse(),
        "a dense tensor with values at tree, got another",
    ),
    "a complex tensor": (
        [torch.zeros(1, dtype=torch.complex64)],
        f"one of {DTYPES} at tree[0], got complex64",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_nobody_could_read_is_not_written(name: str, tmp_path: Path) -> None:
    """A value that load would refuse is refused by save, by its place. Spec: R26.3, R26.9."""
    value, text = REFUSED[name]
    with pytest.raises((ValueError, TypeError)) as caught:
        save(value, tmp_path / FILE)
    assert str(caught.value) == f"save: expected {text}"
    assert list(tmp_path.iterdir()) == []


def test_refusal_changes_no_model(tmp_path: Path) -> None:
    """A file that is refused half-way leaves the model as it was. Spec: R26.12."""
    model, _ = trained()
    before = copy.deepcopy(model.state_dict())
    path = tmp_path / FILE
    torch.save({**model.state_dict(), "z": nn.Identity()}, path)
    with pytest.raises(CheckpointError):
        load_state_dict(model, as_state_dict(load(path)))
    assert_exact(dict(model.state_dict()), dict(before))
