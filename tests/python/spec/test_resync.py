"""Giving every replica the state of replica 0."""

from typing import Any

import pytest
import torch
from torch import nn

from bridge import replicate, resync
from tests.python.spec.vectors import Case, assert_same, cases, refusal, tensor


class Net(nn.Module):
    """A module of one state: parameters, and buffers where they are named."""

    def __init__(self, state: dict[str, list[float]], case: Case) -> None:
        """Register the state, in order."""
        super().__init__()
        for name, value in state.items():
            if name in case.get("buffers", []):
                self.register_buffer(name, tensor(value, dtype_of(name, case)))
            else:
                self.register_parameter(name, nn.Parameter(tensor(value)))


def dtype_of(name: str, case: Case) -> str:
    """Name the dtype of a buffer."""
    return "int64" if name in case.get("whole", []) else "float64"


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
    """States and refusals are those of the vectors. Spec: R6.1, R6.2, R6.4."""
    replicas = [Net(state, case) for state in case["states"]]
    with refusal(case):
        resync(replicas, case.get("policy", "first"))
        expected = [
            {name: tensor(value, dtype_of(name, case)) for name, value in state.items()}
            for state in case["expected"]
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


def test_optimizers_take_the_first_ones_state() -> None:
    """Momentum and options are the first one's, in storage of their own. Spec: R6.5."""
    replicas = replicate(nn.Linear(2, 2), ["cpu"] * 3)
    optimizers = [torch.optim.SGD(r.parameters(), lr=0.1, momentum=0.9) for r in replicas]
    replicas[0](torch.ones(1, 2)).sum().backward()
    optimizers[0].step()
    optimizers[0].param_groups[0]["lr"] = 0.5
    resync(replicas, optimizers=optimizers)
    buffers = [
        optimizer.state[replica.weight]["momentum_buffer"]
        for optimizer, replica in zip(optimizers, replicas, strict=True)
    ]
    assert len({buffer.data_ptr() for buffer in buffers}) == 3
    assert all(torch.equal(buffer, buffers[0]) for buffer in buffers)
    assert [optimizer.param_groups[0]["lr"] for optimizer in optimizers] == [0.5] * 3
    with pytest.raises(ValueError, match=r"^resync: expected 3 optimizers, one per replica, got 2"):
        resync(replicas, optimizers=optimizers[:2])


class Master(torch.optim.Optimizer):
    """An optimizer of the user's with a wide copy of each parameter, a counter and a list."""

    def __init__(self, parameters: Any) -> None:  # noqa: ANN401
        """Start without state."""
        super().__init__(parameters, {"lr": 0.1})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # noqa: ANN401, ARG002
        """Move the wide copies."""
        for parameter in self.param_groups[0]["params"]:
            state = self.state[parameter]
            if not state:
                state.update(wide=parameter.double(), seen=torch.tensor(2**53 + 1), history=[])
            state["wide"].sub_(parameter.grad.double(), alpha=self.param_groups[0]["lr"])
            state["history"].append(state["wide"] / 3)
            parameter.copy_(state["wide"])


@pytest.mark.parametrize("make", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, Master])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_state_of_optimizers_is_copied_bit_for_bit(make: Any, dtype: torch.dtype) -> None:  # noqa: ANN401
    """Whatever its dtypes: wide copies, counters, steps. Spec: R6.5."""
    replicas = replicate(nn.Linear(2, 2).to(dtype), ["cpu"] * 2)
    options = {"momentum": 0.9, "lr": 0.1} if make is torch.optim.SGD else {}
    optimizers = [make(replica.parameters(), **options) for replica in replicas]
    for _ in range(3):
        replicas[0].zero_grad(set_to_none=True)
        replicas[0](torch.ones(1, 2, dtype=dtype)).square().sum().backward()
        optimizers[0].step()
    resync(replicas, optimizers=optimizers)
    for given, own in zip(replicas[0].parameters(), replicas[1].parameters(), strict=True):
        states = [optimizers[0].state[given], optimizers[1].state[own]]
        assert_same(*states)
        tensors = [key for key, value in states[0].items() if isinstance(value, torch.Tensor)]
        assert tensors
        assert all(states[0][key].data_ptr() != states[1][key].data_ptr() for key in tensors)


def test_buffers_that_are_not_persistent_stay() -> None:
    """They are each replica's own, under every policy. Spec: R6.4."""
    for policy in ("first", "mean", "each"):
        replicas = [Mixed(0), Mixed(0)]
        for number, replica in enumerate(replicas):
            replica.get_buffer("scratch").fill_(number)
        resync(replicas, policy)  # type: ignore[arg-type]
        assert [replica.get_buffer("scratch").item() for replica in replicas] == [0, 1]


def test_order_of_a_state() -> None:
    """Parameters, persistent buffers, then children, in the order of registration. Spec: R6.3."""
    own = ["weight", "bias", "mean", "count"]
    norm = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    nested = [f"child.{name}" for name in own]
    assert list(Mixed(1).state_dict()) == own + nested + [f"last.{name}" for name in norm]
