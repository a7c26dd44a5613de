"""Splitting the arguments of a step."""

import torch

from bridge import scatter, scatter_kwargs
from tests.python.spec.vectors import Case, assert_same, cases, refusal, tree


@cases("scatter")
def test_vectors(case: Case) -> None:
    """Shards and refusals are those of the vectors. Spec: R1.1, R1.2, R1.3, R1.4, R1.5."""
    with refusal(case):
        shards = scatter(tree(case["inputs"]), ["cpu"] * case["devices"], case.get("dim", 0))
        assert_same(shards, tree(case["shards"]))


@cases("scatter_kwargs")
def test_vectors_of_keyword_arguments(case: Case) -> None:
    """Positional and keyword arguments are split into as many shards of both. Spec: R1.7."""
    kwargs = {name: tree(part) for name, part in case["kwargs"].items()}
    devices, dim = ["cpu"] * case["devices"], case.get("dim", 0)
    with refusal(case):
        shards, named = scatter_kwargs(tree(case["inputs"]), kwargs, devices, dim)
        assert_same(shards, tree(case["shards"]))
        assert_same(named, tree(case["named"]))


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


def test_gradients_flow_back() -> None:
    """A shard of a tensor that requires a gradient is part of its graph. Spec: R1.1."""
    inputs = torch.ones(3, requires_grad=True)
    first, second = scatter(inputs, ["cpu", "cpu"])
    (first.sum() + 2 * second.sum()).backward()
    assert inputs.grad is not None
    assert inputs.grad.tolist() == [1, 1, 2]
