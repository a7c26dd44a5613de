"""DataParallel is the module, only on several replicas."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import bridge
from bridge.parallel.sync_batch_norm import SyncBatchNorm


def network(norm: Callable[[int], nn.Module] = nn.Identity) -> nn.Module:
    """Make a small network in float64."""
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 6), norm(6), nn.Tanh(), nn.Linear(6, 3)).double()


def differentiate(net: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> float:
    """Leave the gradients of a batch and return its loss."""
    loss = functional.cross_entropy(net(inputs), targets)
    torch.autograd.backward(loss)
    return loss.item()


@pytest.mark.parametrize("replicas", [1, 2, 3, 5, 9])
def test_gradients_are_those_of_the_undivided_batch(replicas: int) -> None:
    """Two backward passes add up as on one device, on inputs too. Spec: R25.1."""
    module = network()
    plain = copy.deepcopy(module)
    net = bridge.DataParallel(module, ["cpu"] * replicas)
    inputs = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    others = inputs.detach().clone().requires_grad_()
    targets = torch.arange(7) % 3
    for _ in range(2):
        differentiate(net, inputs, targets)
        differentiate(plain, others, targets)
    pairs = [(inputs, others), *zip(module.parameters(), plain.parameters(), strict=True)]
    for one, other in pairs:
        assert one.grad is not None
        assert other.grad is not None
        assert torch.allclose(one.grad, other.grad, rtol=0, atol=1e-12)


def test_synchronized_batch_norm_makes_it_one_model() -> None:
    """With SyncBatchNorm the whole batch is normalized as one. Spec: R25.1, R22.1."""
    module, plain = network(SyncBatchNorm), network(nn.BatchNorm1d)
    net = bridge.DataParallel(module, ["cpu"] * 3)
    inputs, targets = torch.randn(8, 4, dtype=torch.float64), torch.arange(8) % 3
    differentiate(net, inputs, targets)
    differentiate(plain, inputs, targets)
    for one, other in zip(module.parameters(), plain.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert torch.allclose(one.grad, other.grad, rtol=0, atol=1e-12)


@pytest.mark.parametrize("norms", [(nn.Identity, nn.Identity), (SyncBatchNorm, nn.BatchNorm1d)])
def test_several_forwards_may_come_before_a_backward(norms: tuple[Any, Any]) -> None:
    """Two batches in one loss are differentiated as on one device. Spec: R25.4."""
    module, plain = map(network, norms)
    net = bridge.DataParallel(module, ["cpu"] * 3)
    one, other = torch.randn(2, 8, 4, dtype=torch.float64)
    for run in (net, plain):
        torch.autograd.backward((run(one) * run(other)).sum())
    for own, expected in zip(module.parameters(), plain.parameters(), strict=True):
        assert own.grad is not None
        assert expected.grad is not None
        assert torch.allclose(own.grad, expected.grad, rtol=0, atol=1e-12)


def test_backward_after_an_update_is_refused() -> None:
    """A graph of parameters that have changed since fails, as on one device. Spec: R25.4."""
    module = network()
    net = bridge.DataParallel(module, ["cpu"] * 2)
    loss = net(torch.ones(4, 4, dtype=torch.float64)).sum()
    torch.nn.init.ones_(module.get_parameter("3.weight"))
    net(torch.ones(4, 4, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_second_derivatives_are_refused() -> None:
    """A gradient that is to be differentiated again would lack its graph. Spec: R25.4."""
    module = network()
    net = bridge.DataParallel(module, ["cpu"] * 2)
    inputs = torch.ones(4, 4, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError) as caught:
        torch.autograd.grad(net(inputs).sum(), inputs, create_graph=True)
    expected = "DataParallel: expected a backward without create_graph, got it on"
    assert str(caught.value) == expected
    assert all(parameter.grad is None for parameter in module.parameters())


def test_training_loop_stays_as_it_is() -> None:
    """An optimizer on its parameters trains the module; replicas follow. Spec: R25.2."""
    module = network()
    net = bridge.DataParallel(module, ["cpu", "cpu"])
    assert [name for name, _ in net.named_parameters()] == [
        f"module.{name}" for name, _ in module.named_parameters()
    ]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    inputs, targets = torch.randn(6, 4, dtype=torch.float64), torch.arange(6) % 3
    losses = []
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        losses.append(differentiate(net, inputs, targets))
        optimizer.step()
    assert losses[0] > losses[1] > losses[2]


def test_modes_hold_in_every_replica() -> None:
    """In evaluation nothing is dropped, in any replica. Spec: R25.2."""
    module = nn.Sequential(nn.Dropout(0.5))
    net = bridge.DataParallel(module, ["cpu"] * 3)
    ones = torch.ones(6, 8)
    assert not torch.equal(net(ones), ones)
    net.eval()
    assert torch.equal(net(ones), ones)


def test_replicas_follow_what_is_frozen() -> None:
    """What is frozen later has no gradient, and what is unfrozen has all of it. Spec: R4.11."""
    module = nn.Linear(2, 1)
    net = bridge.DataParallel(module, ["cpu"] * 3)
    module.weight.requires_grad = False
    net(torch.ones(3, 2)).sum().backward()
    assert module.weight.grad is None
    module.weight.requires_grad = True
    net(torch.ones(3, 2)).sum().backward()
    assert module.weight.grad is not None
    assert module.weight.grad.tolist() == [[3, 3]]


def test_replicas_follow_extra_state() -> None:
    """What a module has beside its tensors follows too, where it says so. Spec: R4.11."""

    class Scaled(nn.Module):
        factor = 1

        def get_extra_state(self) -> int:
            return self.factor

        def set_extra_state(self, state: int) -> None:
            self.factor = state

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.factor

    module = Scaled()
    net = bridge.DataParallel(module, ["cpu"] * 2)
    module.factor = 3
    assert net(torch.ones(2)).tolist() == [3, 3]


def test_module_keeps_the_buffers_of_replica_0() -> None:
    """Batch norm sees its shard; the module keeps what replica 0 saw. Spec: R25.3."""
    module = nn.BatchNorm1d(2, momentum=1.0).double()
    net = bridge.DataParallel(module, ["cpu", "cpu"])
    inputs = torch.tensor([[1.0, 2.0], [3.0, 2.0], [50.0, 60.0], [70.0, 80.0]]).double()
    net(inputs)
    assert module.running_mean is not None
    assert module.running_mean.tolist() == [2.0, 2.0]


def test_trees_of_outputs_and_failures() -> None:
    """Outputs may be trees; a failing replica is named. Spec: R25.1, R3.3."""

    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            if bool((x > 9).any()):
                message = "too large"
                raise ValueError(message)
            return {"outputs": self.layer(x), "places": x.argmax(1)}

    module = Pair()
    net = bridge.DataParallel(module, ["cpu", "cpu"])
    outputs = net(torch.tensor([[1.0, 2.0], [4.0, 3.0], [5.0, 6.0]]))
    assert outputs["places"].tolist() == [1, 0, 1]
    outputs["outputs"].sum().backward()
    assert module.layer.bias.grad is not None
    assert module.layer.bias.grad.tolist() == [3.0, 3.0]
    with pytest.raises(bridge.ReplicaError, match="in replica 1 on device cpu: ValueError: too la"):
        net(torch.tensor([[1.0, 2.0], [10.0, 3.0]]))
