"""Joining the outputs of the replicas."""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from bridge import gather
from tests.python.spec.vectors import Case, assert_same, cases, refusal, tree


class Output(NamedTuple):
    """A named tuple of outputs."""

    logits: torch.Tensor
    loss: torch.Tensor


@dataclass
class Wrapped:
    """A dataclass of outputs."""

    output: Output
    hidden: None


@cases("gather")
def test_vectors(case: Case) -> None:
    """What is joined and what is refused is that of the vectors. Spec: R2.1, R2.2."""
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
