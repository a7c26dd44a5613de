"""Splitting the arguments of a step."""

from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from typing import NamedTuple

import torch

from bridge import scatter
from tests.python.spec.vectors import Case, assert_same, cases, refusal, tree


class Pair(NamedTuple):
    """A named tuple of tensors."""

    x: torch.Tensor
    name: str


@dataclass(frozen=True)
class Batch:
    """A dataclass of tensors."""

    x: torch.Tensor
    pair: Pair


@cases("scatter")
def test_vectors(case: Case) -> None:
    """Shards and refusals are those of the vectors. Spec: R1.1, R1.2, R1.3, R1.4, R1.5."""
    with refusal(case):
        shards = scatter(tree(case["inputs"]), ["cpu"] * case["devices"], case.get("dim", 0))
        assert_same(shards, tree(case["shards"]))


def test_shards_are_views() -> None:
    """On the same device a shard is a view of the inputs: nothing is copied. Spec: R1.1."""
    inputs = torch.arange(6.0)
    first, second = scatter(inputs, ["cpu", "cpu"])
    second.zero_()
    assert inputs.tolist() == [0, 1, 2, 0, 0, 0]
    assert first.data_ptr() == inputs.data_ptr()


def test_sizes_are_those_of_chunk() -> None:
    """For every count and number of devices the shards are torch.chunk's. Spec: R1.1."""
    for count in range(1, 18):
        inputs = torch.arange(count)
        for devices in range(1, 8):
            assert_same(scatter(inputs, ["cpu"] * devices), list(inputs.chunk(devices)))


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


def test_gradients_flow_back() -> None:
    """A shard of a tensor that requires a gradient is part of its graph. Spec: R1.1."""
    inputs = torch.ones(3, requires_grad=True)
    first, second = scatter(inputs, ["cpu", "cpu"])
    (first.sum() + 2 * second.sum()).backward()
    assert inputs.grad is not None
    assert inputs.grad.tolist() == [1, 1, 2]
