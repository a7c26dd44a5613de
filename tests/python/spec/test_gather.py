"""Joining the outputs of the replicas."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_sequence

from bridge import gather, scatter
from tests.python.spec.vectors import Case, Pair, assert_same, cases, refusal, tree


class Output(NamedTuple):
    """A named tuple of outputs."""

    logits: torch.Tensor
    loss: torch.Tensor


@dataclass
class Wrapped:
    """A dataclass of outputs."""

    output: Output
    hidden: None


@st.composite
def batches(draw: st.DrawFn) -> tuple[Any, int]:
    """Make a tree of tensors of one batch size along some dimension, with that dimension."""
    dim, count = draw(st.integers(-2, 1)), draw(st.integers(1, 9))

    @st.composite
    def leaf(draw: st.DrawFn) -> torch.Tensor:
        shape = draw(st.lists(st.integers(0, 3), min_size=2, max_size=4))
        shape[dim] = count
        dtype = draw(st.sampled_from([torch.float64, torch.float32, torch.int64, torch.uint8]))
        return torch.arange(torch.Size(shape).numel()).to(dtype).reshape(shape)

    def containers(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        keys = st.one_of(st.integers(), st.text(max_size=2), st.tuples(st.booleans()))
        return st.one_of(
            st.lists(parts, max_size=3).map(tuple),
            st.dictionaries(keys, parts, max_size=3),
            st.builds(Pair, parts, parts),
            st.builds(Output, parts, parts),
        )

    rest = draw(st.recursive(st.one_of(leaf(), st.none()), containers, max_leaves=6))
    return (draw(leaf()), rest), dim


@settings(deadline=None)
@given(batches(), st.integers(1, 6))
def test_gather_undoes_scatter(batch: tuple[Any, int], devices: int) -> None:
    """For any tree, dimension and number of devices the shards join to the batch. Spec: R2.5."""
    inputs, dim = batch
    shards = scatter(inputs, ["cpu"] * devices, dim)
    assert_same(gather(shards, dim=dim), inputs)
    assert len(shards) <= devices


@cases("gather")
def test_vectors(case: Case) -> None:
    """What is joined and what is refused is that of the vectors. Spec: R2.1, R2.2, R2.4."""
    with refusal(case):
        joined = gather(tree(case["outputs"]), dim=case.get("dim", 0))
        assert_same(joined, tree(case["joined"]))


def test_gradients_flow_back_to_every_replica() -> None:
    """Each replica gets the gradient of its own part, of vectors and of scalars. Spec: R2.3."""
    parts = [torch.tensor([[1.0, 2.0]] * n, requires_grad=True) for n in (2, 1)]
    joined, sums = gather([(part, part.sum()) for part in parts])
    (joined * torch.tensor([[1.0], [2.0], [3.0]])).sum().backward(retain_graph=True)
    (sums * torch.tensor([10.0, 20.0])).sum().backward()
    assert [part.grad.tolist() for part in parts if part.grad is not None] == [
        [[11, 11], [12, 12]],
        [[23, 23]],
    ]


def test_named_tuples_and_dataclasses_keep_their_type() -> None:
    """Named tuples and dataclasses are joined part by part. Spec: R2.2."""
    outputs = [
        Wrapped(Output(torch.tensor([[value]]), torch.tensor(value)), None) for value in (1.0, 2.0)
    ]
    joined = gather(outputs)
    assert isinstance(joined, Wrapped)
    assert joined.hidden is None
    assert joined.output.logits.tolist() == [[1], [2]]
    assert joined.output.loss.tolist() == [1, 2]


def test_result_is_fresh() -> None:
    """The result shares nothing with the outputs, not even those of one replica. Spec: R2.1."""
    output = torch.ones(2)
    gather([output]).zero_()
    assert output.tolist() == [1, 1]


def test_tuples_of_torch_keep_their_type() -> None:
    """What a function of torch returns is joined part by part. Spec: R2.2."""
    joined = gather([torch.tensor([[1, 5]]).max(1), torch.tensor([[7, 2]]).max(1)])
    assert (joined.values.tolist(), joined.indices.tolist()) == ([5, 7], [1, 0])


def test_packed_sequences_are_refused() -> None:
    """A packed sequence is in the order of its time steps: it is not joined. Spec: R2.2."""
    packed = pack_sequence([torch.zeros(2), torch.zeros(1)])
    with pytest.raises(TypeError, match=r"^gather: expected .* at outputs, got PackedSequence$"):
        gather([packed, packed])


def test_device_is_checked() -> None:
    """What is no device is refused. Spec: R2.4."""
    with pytest.raises(ValueError, match=r"^gather: expected a device such as cpu .*, got gpu$"):
        gather([torch.zeros(1)], "gpu")
