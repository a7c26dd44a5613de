"""Giving every replica the state of replica 0."""

import torch
from torch import nn

from bridge import replicate, resync
from tests.python.spec.vectors import Case, assert_same, cases, refusal, tensor


class Net(nn.Module):
    """A module of one state: parameters, and buffers where they are named."""

    def __init__(self, state: dict[str, list[float]], buffers: list[str]) -> None:
        """Register the state, in order."""
        super().__init__()
        for name, value in state.items():
            if name in buffers:
                self.register_buffer(name, tensor(value))
            else:
                self.register_parameter(name, nn.Parameter(tensor(value)))


class Mixed(nn.Module):
    """Registers a child, a buffer and a parameter, in this order, with a child of the same form."""

    def __init__(self, depth: int) -> None:
        """Build so many levels."""
        super().__init__()
        if depth:
            self.child = Mixed(depth - 1)
            self.last = nn.BatchNorm1d(1)
        self.register_buffer("scratch", torch.zeros(1), persistent=False)
        self.register_buffer("mean", torch.zeros(1))
        self.weight = nn.Parameter(torch.zeros(1))
        self.register_buffer("count", torch.tensor(0))
        self.bias = nn.Parameter(torch.zeros(1))


@cases("resync")
def test_vectors(case: Case) -> None:
    """States and refusals are those of the vectors. Spec: R6.1, R6.2."""
    replicas = [Net(state, case.get("buffers", [])) for state in case["states"]]
    with refusal(case):
        resync(replicas)
        expected = [
            {name: tensor(value) for name, value in state.items()} for state in case["expected"]
        ]
        assert_same([dict(replica.state_dict()) for replica in replicas], expected)


def test_storage_stays_apart() -> None:
    """The state is copied: what replica 0 does later stays with it. Spec: R6.1."""
    model = nn.Linear(2, 2)
    first, second = replicate(model, ["cpu", "cpu"])
    first.weight.data.fill_(3)
    resync([first, second])
    first.weight.data.fill_(4)
    assert second.weight.tolist() == [[3, 3], [3, 3]]


def test_integer_counters_are_copied() -> None:
    """Counters of batch norm are replica 0's. Spec: R6.1."""
    replicas = replicate(nn.BatchNorm1d(2), ["cpu", "cpu"])
    replicas[0](torch.randn(4, 2))
    resync(replicas)
    counts = [replica.num_batches_tracked for replica in replicas]
    assert [int(count) for count in counts if count is not None] == [1, 1]


def test_order_of_a_state() -> None:
    """Parameters, persistent buffers, then children, in the order of registration. Spec: R6.3."""
    own = ["weight", "bias", "mean", "count"]
    norm = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    nested = [f"child.{name}" for name in own]
    assert list(Mixed(1).state_dict()) == own + nested + [f"last.{name}" for name in norm]
