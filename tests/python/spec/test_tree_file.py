"""Trees in safetensors files, with a digest."""

import random
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch

from bridge.checkpoint import CheckpointError, as_state_dict, load_file, load_metadata, read, write
from bridge.models import LeNet
from bridge.parallel.state_dict import load_state_dict
from tests.python.spec.checkpoints import FILE, assert_exact, state, values, written
from tests.python.spec.vectors import Case, cases, refusal


@cases("tree_file")
def test_vectors_hold(case: Case, tmp_path: Path) -> None:
    """Trees become the bytes of the vectors and come back, or are refused. Spec: R26.4, R26.5."""
    path = written(case, tmp_path)
    with refusal(case):
        tree = read(path)
        assert_exact(tree, values(case["tree"]))
        write(values(case["tree"]), path)
        assert path.read_bytes() == bytes.fromhex(case["file"])


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    """One bit that changes, anywhere in the file, is refused. Spec: R26.5."""
    path = tmp_path / FILE
    write({"model": {"weight": torch.ones(2)}, "step": 1}, path)
    content = path.read_bytes()
    pick = random.Random(0)  # noqa: S311 - which bit
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << pick.randrange(8)
        path.write_bytes(changed)
        with pytest.raises(CheckpointError):
            read(path)


def test_plain_tools_find_the_model(tmp_path: Path) -> None:
    """The model's tensors have their own names, all others a prefix. Spec: R26.6."""
    path = tmp_path / FILE
    tree = state()
    tree["model"]["__bridge__[0]"] = torch.ones(1)
    tree["model"]["__metadata__"] = torch.ones(2)
    write(tree, path)
    names = list(load_file(path))
    own = ["weight", "flag", "none"]
    assert [name for name in names if not name.startswith("__bridge__")] == own
    assert len(set(names)) == len(names) == 7
    assert load_metadata(path)["format"] == "pt"
    assert_exact(read(path), tree)


def test_types_come_back_plain(tmp_path: Path) -> None:
    """What derives from a dict, list or tuple comes back as one. Spec: R26.4."""
    path = tmp_path / FILE
    shape = torch.Size([1, 2])
    write(OrderedDict(a=torch.nn.Parameter(torch.ones(1)), s=shape), path)
    tree = read(path)
    assert (type(tree), type(tree["a"]), type(tree["s"])) == (dict, torch.Tensor, tuple)


def nested(levels: int) -> list[Any]:
    """Nest lists."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


KINDS = "a dict, list, tuple, tensor, number, text, boolean or None"
REFUSED: dict[str, tuple[object, str]] = {
    "a set": (
        {"a": [{1}]},
        f'write: expected {KINDS} at tree["a"][0], got set',
    ),
    "a key": ({"a": {1.5: 0}}, 'write: expected keys of type str or int at tree["a"], got float'),
    "a flag as key": ({True: 0}, "write: expected keys of type str or int at tree, got bool"),
    "65 bits": (
        [2**63],
        "write: expected an integer of 64 bits at tree[0], got 9223372036854775808",
    ),
    "surrogates": (["\ud800"], "write: expected text at tree[0], got half of a pair of surrogates"),
    "levels": (nested(101), "write: expected at most 100 levels, got more"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_is_refused(name: str, tmp_path: Path) -> None:
    """A value that is none of a tree is named by its place; nothing is written. Spec: R26.3."""
    value, text = REFUSED[name]
    with pytest.raises((ValueError, TypeError)) as caught:
        write(value, tmp_path / FILE)
    assert str(caught.value) == text
    assert list(tmp_path.iterdir()) == []


def test_loading_into_a_model_is_all_or_nothing(tmp_path: Path) -> None:
    """A state of another model, and what is no state, leave the model as it was. Spec: R26.12."""
    path = tmp_path / FILE
    model, other = LeNet(), LeNet()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    bad = dict(other.state_dict())
    bad[list(bad)[-1]] = torch.zeros(3)
    write({"model": bad, "step": 1, "list": [torch.ones(1)]}, path)
    tree = read(path)
    with pytest.raises(RuntimeError, match="size mismatch"):
        load_state_dict(model, as_state_dict(tree["model"]))
    with pytest.raises(TypeError, match=r"^as_state_dict: expected names and tensors, got list$"):
        load_state_dict(model, as_state_dict(tree["list"]))
    with pytest.raises(TypeError, match=r"expected a name and a tensor, got step: int$"):
        load_state_dict(model, as_state_dict({"a": torch.ones(1), "step": 1}))
    assert_exact(dict(model.state_dict()), before)
    write({"model": other.state_dict()}, path)
    load_state_dict(model, as_state_dict(read(path)["model"]))
    assert_exact(dict(model.state_dict()), dict(other.state_dict()))
