"""The containers that scatter takes apart, and what it makes of them."""

from collections import OrderedDict, UserDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

from bridge import scatter


class Pair(NamedTuple):
    """A named tuple of tensors."""

    x: torch.Tensor
    name: str = "unnamed"


@dataclass(frozen=True)
class Batch:
    """A dataclass of tensors."""

    x: torch.Tensor
    pair: Pair


@dataclass(frozen=True)
class Prepared:
    """A dataclass whose constructor changes what it is given, and makes more of it."""

    x: torch.Tensor
    scale: InitVar[float]
    mask: torch.Tensor = field(init=False)
    unset: torch.Tensor = field(init=False)

    def __post_init__(self, scale: float) -> None:
        """Scale the tensor, and make a mask that is a field, and a twin that is none."""
        object.__setattr__(self, "x", self.x * scale)
        object.__setattr__(self, "mask", self.x > 2)
        object.__setattr__(self, "twin", -self.x)

    @cached_property
    def size(self) -> int:
        """Count the samples."""
        return len(self.x)


@dataclass(frozen=True, slots=True)
class Slotted:
    """A dataclass without a dictionary."""

    x: torch.Tensor
    scale: float = 1.0


class Items(dict[str, Any]):
    """A dict that must be told more than its items."""

    def __init__(self, name: str, **items: object) -> None:
        """Keep a name beside the items."""
        super().__init__(items)
        self.name = name


class Samples(list[str]):
    """A list that must be told more than its items."""

    def __init__(self, name: str, items: list[str]) -> None:
        """Keep a name beside the items."""
        super().__init__(items)
        self.name = name


def test_named_tuples_and_dataclasses_keep_their_type() -> None:
    """Named tuples and dataclasses are split part by part. Spec: R1.2."""
    inputs = Batch(torch.tensor([1.0, 2.0]), Pair(torch.tensor([3.0, 4.0]), "name"))
    first, second = scatter(inputs, ["cpu", "cpu"])
    assert first == Batch(torch.tensor([1.0]), Pair(torch.tensor([3.0]), "name"))
    assert isinstance(second.pair, Pair)
    assert second.pair.x.tolist() == [4]


def test_dicts_keep_their_type() -> None:
    """Dicts of a subclass stay of it, with what it holds beside its items. Spec: R1.2."""
    inputs = defaultdict(torch.Tensor, {"x": torch.tensor([1.0, 2.0])})
    second = scatter((inputs, OrderedDict(inputs)), ["cpu", "cpu"])[1]
    assert second[0].default_factory is torch.Tensor
    assert second[0]["x"].tolist() == [2]
    assert isinstance(second[1], OrderedDict)


def test_subclasses_keep_what_they_hold() -> None:
    """Subclasses and other mappings keep their type and attributes. Spec: R1.2."""
    x = torch.tensor([1.0, 2.0])
    inputs = (Items("items", x=x), Samples("samples", ["a", "b"]), UserDict(x=x))
    items, samples, user = scatter((*inputs, MappingProxyType({"x": x})), ["cpu", "cpu"])[1][:3]
    assert (type(items), items.name, items["x"].tolist()) == (Items, "items", [2])
    assert (type(samples), samples.name, samples) == (Samples, "samples", ["b"])
    assert (type(user), user["x"].tolist()) == (UserDict, [2])
    assert scatter(MappingProxyType({"x": x}), ["cpu", "cpu"])[1]["x"].tolist() == [2]
    assert inputs[0]["x"] is x


def test_constructors_do_not_run_again() -> None:
    """A dataclass is split attribute by attribute, and what it cached is made anew. Spec: R1.2."""
    inputs = Prepared(torch.tensor([1.0, 2.0, 3.0]), 1.5)
    assert inputs.size == 3
    first, second = scatter(inputs, ["cpu", "cpu"])
    assert (first.x.tolist(), first.mask.tolist()) == ([1.5, 3], [False, True])
    assert (second.x.tolist(), second.twin.tolist()) == ([4.5], [-4.5])
    assert (first.size, second.size, hasattr(second, "unset")) == (2, 1, False)
    assert scatter(Slotted(torch.tensor([1.0, 2.0])), ["cpu", "cpu"])[1].x.tolist() == [2]


def test_tuples_of_torch_keep_their_type() -> None:
    """Sizes go to every shard; what a function of torch returns is split. Spec: R1.2."""
    inputs = (torch.tensor([[1, 5], [7, 2]]).max(1), torch.Size([3, 4]))
    second = scatter(inputs, ["cpu", "cpu"])[1]
    assert (second[0].values.tolist(), second[0].indices.tolist()) == ([7], [0])
    assert type(second[1]) is torch.Size
    assert second[1] == (3, 4)


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.zeros(2),
        lambda: {"a", "b"},
        lambda: deque(["a", "b"]),
        lambda: iter(["a", "b"]),
        lambda: range(2),
        lambda: SimpleNamespace(x=torch.zeros(2)),
        lambda: SimpleNamespace(parts=[("x", torch.zeros(2))]),
        lambda: pack_sequence([torch.zeros(2), torch.zeros(1)]),
    ],
)
def test_what_cannot_be_split_is_refused(make: Callable[[], Any]) -> None:
    """What holds samples goes to no shard as a whole, and is named. Spec: R1.6."""
    value = make()
    expected = "inputs[1] to be a tensor, a list, a tuple, a dict or a plain value"
    with pytest.raises(TypeError) as caught:
        scatter((torch.zeros(2), value), ["cpu", "cpu"])
    assert str(caught.value) == f"scatter: expected {expected}, got {type(value).__name__}"


def test_plain_objects_go_to_every_shard() -> None:
    """Objects without samples, modules and functions go to every shard as they are. Spec: R1.2."""
    plain = (
        object(),
        nn.ModuleList([nn.Linear(1, 1)]),
        len,
        torch.float32,
        b"ab",
        np.float32(1),
        int,
    )
    for shard in scatter((torch.zeros(2), *plain), ["cpu", "cpu"]):
        assert all(one is other for one, other in zip(shard[1:], plain, strict=True))
